/* SPDX-License-Identifier: Apache-2.0
 * A total that processes share, any of which may be killed in any step (policy/ledger/total.h).
 *
 * Each member has two stripes, as a thread takes whichever is free: what one stripe took another may give back. The
 * killer ends members at any step, a slot is joined again after its member's end, and whoever is refused takes back
 * what the dead held, under the header's lock, which header_lock.pml has. Steps are sequentially consistent: a stripe
 * is written by one thread, in the order that its release stores keep.
 *
 * Shown: the total never passes the limit; what a dead process's last operation did is told right in every step; a
 * total is never less than what the living hold; in the end nothing is left, and as much can be had as at first.
 */
#define MEMBERS 2
#define STRIPES 2
#define ALL 4
#define LIMIT 2
#define NOBODY 255
#ifndef OPERATIONS
#define OPERATIONS 1
#endif
#ifndef FAULT
#define FAULT 0
#endif
#ifndef KILLS
#define KILLS 2
#endif

typedef Stripe {
    short held, before, delta;
    byte begun, completed, replaced
};
Stripe stripes[ALL];
short total;
byte stamped_by = NOBODY, stamped_as;  /* the stamp: stripe and operation */
byte peak;

bool dead[MEMBERS + 1], joined[MEMBERS];  /* the last one is the checker, who lives */
bool locked;
byte locker;
byte kills, ended;

/* Never read by a member: what the operations that took effect come to. */
short truth[ALL];
byte highest;

#define held_by(m) (truth[(m) * STRIPES] + truth[(m) * STRIPES + 1])
#define held_by_living ((joined[0] && !dead[0] -> held_by(0) : 0) + (joined[1] && !dead[1] -> held_by(1) : 0))

inline note_truth(number, delta) {
    truth[number] = truth[number] + delta;
    if
    :: total > highest -> highest = total
    :: else
    fi
}

/* note_replaced(): a compare-exchange loop towards the larger number. */
inline note_replaced(by, as) {
    if
    :: by != NOBODY && stripes[by].replaced < as -> stripes[by].replaced = as
    :: else
    fi
}

/* note_peak(): the same. */
inline note_peak(bytes) {
    if
    :: bytes > peak -> peak = bytes
    :: else
    fi
}

/* change() and change_slowly(). `ceiling` of NOBODY is kNoLimit. The two loads of a total may be torn: the stamp is of
 * one moment, the bytes of another. */
inline change(number, delta_, ceiling, notes, done) {
    atomic {  /* nobody reads these before `begun` is there */
        sequence = stripes[number].completed + 1;
        before = stripes[number].held;
        stripes[number].delta = delta_;
        stripes[number].before = before
    };
    stripes[number].begun = sequence;
    do
    :: atomic { now_by = stamped_by; now_as = stamped_as };
       now = total;
       if
       :: notes -> atomic { note_peak(now) }
       :: else
       fi;
       if
       :: ceiling != NOBODY && delta_ > 0 && now + delta_ > ceiling ->
          if
          :: atomic { stamped_by == now_by && stamped_as == now_as && total == now -> done = false }; break
          :: atomic { else -> skip }
          fi
       :: else ->
#if FAULT != 1  /* a stamp that is replaced without a note */
          if
          :: now_by != number -> atomic { note_replaced(now_by, now_as) }
          :: else
          fi;
#endif
          if
#if FAULT == 2  /* an exchange of the bytes alone */
          :: atomic { total == now ->
#else
          :: atomic { total == now && stamped_by == now_by && stamped_as == now_as ->
#endif
                total = now + delta_;
                stamped_by = number;
                stamped_as = sequence;
                note_truth(number, delta_);
                done = true
             };
             break
          :: atomic { else -> skip }
          fi
       fi
    od;
    if
    :: done -> stripes[number].held = before + delta_
    :: else
    fi;
    atomic {
        stripes[number].completed = sequence;
        now = 0; now_by = 0; now_as = 0; before = 0; sequence = 0
    }
}

/* resolve() */
inline resolve(number) {
    sequence = stripes[number].begun;
    if
    :: sequence > stripes[number].completed ->
       atomic { happened = (stamped_by == number && stamped_as == sequence) };
       happened = happened || stripes[number].replaced >= sequence;
       stripes[number].held = stripes[number].before + (happened -> stripes[number].delta : 0);
       stripes[number].completed = sequence
    :: else
    fi;
    assert(stripes[number].held == truth[number])
}

/* take_back(): what stripes gave back that others took comes first. */
inline take_back(member) {
    resolve(member * STRIPES);
    resolve(member * STRIPES + 1);
#if FAULT == 3  /* what was taken is given back before what others' stripes lack */
#define SIGN (1 - sign)
#else
#define SIGN sign
#endif
    for (sign : 0 .. 1) {
        for (i : 0 .. STRIPES - 1) {
            amount = stripes[member * STRIPES + i].held;
            if
            :: amount != 0 && ((amount < 0) == (SIGN == 0)) ->
               change(member * STRIPES + i, 0 - amount, NOBODY, true, granted);
               assert(total >= held_by_living)
            :: else
            fi
        }
    }
    amount = 0
}

/* Roster::take_back_dead(), under the header's lock. Whoever is killed in it leaves the rest to the next. */
inline take_back_dead() {
    atomic { !locked || dead[locker] -> locked = true; locker = me };
    for (other : 0 .. MEMBERS - 1) {
        if
        :: joined[other] && dead[other] ->
           take_back(other);
           atomic { joined[other] = false }
        :: else
        fi
    }
    atomic { locked = false; other = 0; sign = 0; i = 0; amount = 0; granted = false; happened = false }
}

proctype Member(byte me) {
    byte operations, now_by, now_as, sequence, stripe, i, sign, other;
    short now, before, mine, amount;
    bool granted, happened;
    {
        do
        :: operations < OPERATIONS ->
           operations++;
           if
           :: stripe = me * STRIPES
           :: stripe = me * STRIPES + 1
           fi;
           if
           :: mine < LIMIT ->
              if
              :: amount = 1
              :: amount = 2
              fi;
              change(stripe, amount, LIMIT, false, granted);
              if
              :: granted -> atomic { mine = mine + amount; amount = 0; granted = false }
              :: else -> amount = 0; take_back_dead()
              fi
           :: mine > 0 ->
              change(stripe, 0 - mine, NOBODY, true, granted);
              atomic { mine = 0; granted = false }
           fi
        :: break
        od;
        if
        :: mine > 0 -> change(me * STRIPES, 0 - mine, NOBODY, true, granted)
        :: else
        fi;
        goto done
    } unless { dead[me] };
done:
    ended++
}

/* SIGKILL, in any step; and a new process in the place of one that was taken back. */
active proctype Killer() {
    byte victim;
    atomic {
        joined[0] = true; joined[1] = true;
        run Member(0); run Member(1)
    };
    do
    :: kills < KILLS ->
       if
       :: atomic { joined[0] && !dead[0] -> dead[0] = true; kills++ }
       :: atomic { joined[1] && !dead[1] -> dead[1] = true; kills++ }
       :: break
       fi
    :: break
    od
}

/* Who comes when all have ended finds nothing of theirs, and can have the whole limit. */
active proctype Checker() {
    byte me = MEMBERS, now_by, now_as, sequence, i, sign, other;
    short now, before, amount;
    bool granted, happened;
    ended == MEMBERS;
    take_back_dead();
    assert(total == 0);
    assert(peak == highest || total == highest)
}
