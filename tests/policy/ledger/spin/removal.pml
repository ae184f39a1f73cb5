/* SPDX-License-Identifier: Apache-2.0
 * A ledger that somebody removes while processes hold memory by it (policy/ledger/lost.cpp, carry.cpp).
 *
 * Each process has a place in the old file. One of them, or all at once, notices that the file is gone: it locks the
 * old file and the new one, retires the old one's totals, carries the others' places over and moves its own. Who does
 * not look goes on in the old file: it may give back there, and what it asks for is refused, as the total is retired.
 * Processes are killed in any step; what the dead held is taken back in the new file. Both locks are header_lock.pml's,
 * and a process that is killed with one lets the next in.
 *
 * Shown: what the living hold never passes the limit, in whichever file it was granted; nothing that a living process
 * holds is forgotten once it has moved; in the end the new file's total is what the living hold.
 */
#define PROCESSES 3
#define LIMIT 2
#ifndef OPERATIONS
#define OPERATIONS 1
#endif
#ifndef FAULT
#define FAULT 0
#endif
#ifndef KILLS
#define KILLS 1
#endif

typedef Place {
    bool live;           /* MemberState::live */
    bool carried;        /* MemberRole::carried: entered for it by another */
    short held, before, delta;
    bool begun, done;    /* an operation is in flight; it has taken effect (its stamp is in the total, or was noted) */
};
Place old[PROCESSES], new[PROCESSES];
short old_total, new_total;
bool retired;
bool locked;
byte locker;
bool dead[PROCESSES], moved[PROCESSES];
byte kills, ended;
bool all_killed;  /* the killer is done */
short holds[PROCESSES];  /* what the driver has given the process, as nobody but the process knows */

#define living(p) (dead[p] -> 0 : holds[p])
#define living_all (living(0) + living(1) + living(2))

/* set_retired(): by the exchange that change() makes reservations with. */
inline retire() {
#if FAULT != 1  /* the old file's totals are not retired */
    retired = true
#else
    skip
#endif
}

/* held_now(): of an operation in flight it tells whether it took effect. In one step: the function reads until nothing
 * has changed meanwhile. */
#if FAULT == 2  /* an operation in flight is taken for one that has not happened */
#define happened(p) false
#else
#define happened(p) old[p].done
#endif
inline held_now(p, sum) { sum = (old[p].begun -> old[p].before + (happened(p) -> old[p].delta : 0) : old[p].held) }

/* carry_member(): enters what a place of the old file holds in the new one, or brings the entry up to date. */
inline carry_member(p) {
    if
    :: p != me && old[p].live && !dead[p] ->
       if
       :: !new[p].live -> atomic { new[p].carried = true; new[p].held = 0; new[p].live = true }
       :: else
       fi;
       if
       :: new[p].carried ->
          held_now(p, amount);
          atomic {
              new_total = new_total + amount - new[p].held;
              new[p].held = amount
          }
       :: else
       fi
    :: else
    fi
}

/* Roster::take_back_dead(), in the new file. */
inline take_back_dead(p) {
    if
    :: new[p].live && dead[p] ->
       atomic { new_total = new_total - new[p].held; new[p].held = 0; new[p].live = false }
    :: else
    fi
}

/* keep_file(), and Roster::move_places() with Membership::move_to(). */
inline keep_file() {
    atomic { !locked || dead[locker] -> locked = true; locker = me };
    retire();
    carry_member(0);
    carry_member(1);
    carry_member(2);
    take_back_dead(0);
    take_back_dead(1);
    take_back_dead(2);
    /* No thread of the process is in a stripe meanwhile. */
    atomic {
#if FAULT == 3  /* an entry that others made stays beside the process's own place */
        new_total = new_total + old[me].held;
#else
        new_total = new_total + old[me].held - new[me].held;
#endif
        new[me].held = old[me].held;
        new[me].carried = false;
        new[me].live = true;
        moved[me] = true
    };
    assert(new[me].held == holds[me]);
    old[me].live = false;
    atomic { locked = false; amount = 0 }
}

/* change() in the old file: what it may do there once that is retired is to give back. */
inline change_in_old(delta_) {
    atomic { old[me].delta = delta_; old[me].before = old[me].held; old[me].done = false; old[me].begun = true };
    if
    :: atomic { delta_ > 0 && (retired || old_total + delta_ > LIMIT) -> granted = false }
    :: atomic { delta_ <= 0 || (!retired && old_total + delta_ <= LIMIT) ->
          old_total = old_total + delta_;
          old[me].done = true;
          granted = true;
          holds[me] = holds[me] + delta_;
          assert(living_all <= LIMIT)
       }
    fi;
    atomic {
        if
        :: granted -> old[me].held = old[me].before + delta_
        :: else
        fi;
        old[me].begun = false
    }
}

inline change_in_new(delta_) {
    if
    :: atomic { delta_ > 0 && new_total + delta_ > LIMIT -> granted = false }
    :: atomic { delta_ <= 0 || new_total + delta_ <= LIMIT ->
          new_total = new_total + delta_;
          new[me].held = new[me].held + delta_;
          granted = true;
          holds[me] = holds[me] + delta_;
          assert(living_all <= LIMIT)
       }
    fi
}

proctype Process(byte me) {
    byte operations;
    short amount;
    bool granted;
    {
        do
        :: !moved[me] -> keep_file()  /* it has seen that the file is gone */
        :: operations < OPERATIONS && me < 2 ->  /* the third one does nothing but move, or stay */
           operations++;
           if
           :: !moved[me] ->
              if
              :: change_in_old(1);
                 if
                 :: !granted && retired -> keep_file()
                 :: else
                 fi
              :: holds[me] > 0 -> change_in_old(-1)
              fi
           :: else ->
              if
              :: change_in_new(1)
              :: holds[me] > 0 -> change_in_new(-1)
              fi
           fi;
           granted = false
        :: break
        od;
        if
        :: !moved[me] -> keep_file()
        :: else
        fi;
        goto done
    } unless { dead[me] };
done:
    ended++
}

active proctype Killer() {
    atomic {
        old[0].live = true; old[1].live = true; old[2].live = true;
        old[0].held = 1; holds[0] = 1; old_total = 1;
        run Process(0); run Process(1); run Process(2)
    };
    do
    :: kills < KILLS ->
       if
       :: atomic { !dead[0] -> dead[0] = true; kills++ }
       :: atomic { !dead[1] -> dead[1] = true; kills++ }
       :: break
       fi
    :: break
    od;
    all_killed = true
}

/* Who comes when all have ended or stay: the total is what the living hold. */
active proctype Checker() {
    byte me = PROCESSES;
    ended == PROCESSES && all_killed;
    atomic { !locked || dead[locker] -> locked = true };
    take_back_dead(0);
    take_back_dead(1);
    take_back_dead(2);
    assert(new_total == living_all)
}
