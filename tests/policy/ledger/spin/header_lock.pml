/* SPDX-License-Identifier: Apache-2.0
 * The lock of a ledger's header: the number of its holder's presence, exchanged for 0 (policy/ledger/header_lock.cpp).
 *
 * Processes are killed in any step, or stopped for good. A number is never used again, as each presence has a new one.
 *
 * Shown: no two processes that live are inside; who waits for a holder that has ended gets the lock, and who waits for
 * one that is stopped gives up. Every process that goes on comes to its end.
 */
#define PROCESSES 3
#define PATIENCE 1  /* looks at a holder that lives, before the deadline */
#ifndef FAULT
#define FAULT 0
#endif
#ifndef KILLS
#define KILLS 2
#endif

byte holder;  /* 0: nobody; else 1 + the process */
bool dead[PROCESSES], stopped[PROCESSES], inside[PROCESSES];
bool ended[PROCESSES];
byte kills;

#define gone(i) (stopped[i] && !dead[i])
#define alone ((inside[0] + inside[1] + inside[2]) == 1)

proctype Process(byte me) {
    byte seen, looks;
    {
        skip;
        /* lock_header_until(): take(), else a look at the holder; has_ended() asks the kernel for its lock */
wait:
        if
        :: atomic { holder == 0 -> holder = me + 1 }; goto has_it
        :: atomic { holder != 0 -> seen = holder }
        fi;
        if
#if FAULT == 2  /* who is stopped is taken for dead */
        :: dead[seen - 1] || stopped[seen - 1] ->
#else
        :: dead[seen - 1] ->
#endif
           if
#if FAULT == 1  /* the dead one's lock is taken without a look at who has it now */
           :: holder = me + 1; goto has_it
#endif
           :: atomic { holder == seen -> holder = me + 1 }; goto has_it
           :: atomic { holder != seen -> seen = 0 }; goto wait
           fi
        :: else
        fi;
        if
        :: looks < PATIENCE -> atomic { looks++; seen = 0 }; goto wait
        :: else -> goto gives_up
        fi;

has_it:
        atomic {
            inside[me] = true;
            assert(alone)
        };
        /* sign(); what is done in there; the process may be stopped in it, or killed */
        skip;
        atomic { inside[me] = false };
        /* unlock_header() */
        if
        :: atomic { holder == me + 1 -> holder = 0 }
        :: atomic { holder != me + 1 -> assert(false) }  /* nobody takes it from one that lives */
        fi;
        goto done;
gives_up:
        goto done
    } unless {
        atomic {
            dead[me] || stopped[me] ->
            inside[me] = inside[me] && stopped[me]
        };
end_stopped:
        if
        :: dead[me]
        fi
    };
done:
    ended[me] = true
}

/* SIGKILL and SIGSTOP in any step. Who is stopped may be killed later. */
active proctype Killer() {
    byte victim;
    atomic { run Process(0); run Process(1); run Process(2) };
    do
    :: kills < KILLS ->
       atomic {
           if
           :: victim = 0
           :: victim = 1
           :: victim = 2
           fi;
           if
           :: !dead[victim] -> dead[victim] = true; inside[victim] = false
           :: !dead[victim] && !stopped[victim] -> stopped[victim] = true
           :: else
           fi;
           kills++
       }
    :: break
    od
}

/* Whoever is neither killed nor stopped comes to an end: nobody waits for ever. */
active proctype Checker() {
    (ended[0] || gone(0)) && (ended[1] || gone(1)) && (ended[2] || gone(2))
end:
    skip
}
