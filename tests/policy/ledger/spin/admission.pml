/* SPDX-License-Identifier: Apache-2.0
 * Reservations of several users who claim the same memory, each in a file of his own (policy/ledger/admission.cpp).
 *
 * A claim has a number, from the clock or from the ticket with which its process has waited; so a number may be older
 * than claims that are there already, and two may be the same. A file is read without its lock. A process may be
 * killed in any step, and one may be hostile: it claims and never decides.
 *
 * Shown: never is more granted than there is; whoever lives is answered, whatever the others do.
 */
#ifndef FAULT
#define FAULT 0
#endif
#ifndef KILLS
#define KILLS 1
#endif
#define USERS 3
#define CAPACITY 2
#define PATIENCE 1  /* rounds in which others' later claims are waited for: kPatienceWithOthers */

mtype = { unused, claimed, granted };
mtype account[USERS] = unused;
byte ticket[USERS], reserved[USERS];
bool dead[USERS], hostile[USERS], answered[USERS];
byte clock = 1, kills;

#define promised(u) (account[u] == granted && !dead[u] -> reserved[u] : 0)
#define all_promised (promised(0) + promised(1) + promised(2))

/* add_foreign() of one user's file, and add_account() of what it says: a claim that comes later is waited for, one that
 * came earlier counts as granted. Members of the dead don't count: their presence's lock is gone. */
inline add_foreign(other) {
    atomic {
        if
        :: other == me || dead[other] || account[other] == unused
        :: account[other] == granted && other != me && !dead[other] -> others = others + reserved[other]
        :: account[other] == claimed && other != me && !dead[other] ->
           if
#if FAULT == 2  /* no bound for the wait */
           :: ticket[other] > ticket[me] -> undecided = true
#endif
           :: rounds < PATIENCE && ticket[other] > ticket[me] -> undecided = true
#if FAULT == 1  /* a later claim counts for nothing after the patience, not as granted */
           :: else -> others = others + (ticket[other] > ticket[me] -> 0 : reserved[other])
#else
           :: else -> others = others + reserved[other]
#endif
           fi
        fi
    }
}

proctype Claimer(byte me; byte bytes; bool waited) {
    byte others, rounds;
    bool undecided;
    {
        /* AdmissionControl::begin(): the number is the ticket's, where the process has waited, else the clock's */
        if
        :: waited -> ticket[me] = 0
        :: !waited -> atomic { ticket[me] = clock; if :: clock < 3 -> clock++ :: skip fi }
        fi;
        reserved[me] = bytes;
#if FAULT != 3
        account[me] = claimed;
#endif
        if
        :: hostile[me] -> goto done  /* for ever */
        :: else
        fi;
        /* AdmissionControl::join(): reads without its own lock, decides under it */
        do
        :: atomic { others = 0; undecided = false };
           add_foreign(0);
           add_foreign(1);
           add_foreign(2);
#if FAULT == 3  /* the claim can be seen only once the others' have been read */
           account[me] = claimed;
#endif
           if
           :: undecided -> atomic { rounds++; assert(rounds <= PATIENCE) }
           :: else ->
              if
              :: others + bytes <= CAPACITY ->
                 atomic { account[me] = granted; answered[me] = true; assert(all_promised <= CAPACITY) }
              :: else -> atomic { account[me] = unused; answered[me] = true }
              fi;
              break
           fi
        od;
        goto done
    } unless { dead[me] };
done:
    skip
}

active proctype Killer() {
    atomic {
        if
        :: run Claimer(0, 1, false)
        :: run Claimer(0, 2, false)
        fi;
        run Claimer(1, 2, true);
        if
        :: run Claimer(2, 1, false)
        :: hostile[2] = true; run Claimer(2, 1, false)
        fi
    };
    do
    :: kills < KILLS ->
       if
       :: atomic { dead[0] = true; kills++ }
       :: atomic { dead[1] = true; kills++ }
       :: atomic { dead[2] = true; kills++ }
       :: break
       fi
    :: break
    od
}

/* Nobody waits for ever for a dead or hostile one. */
active proctype Checker() {
    (dead[0] || answered[0]) && (dead[1] || answered[1]) && (dead[2] || hostile[2] || answered[2])
}
