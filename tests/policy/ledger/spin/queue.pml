/* SPDX-License-Identifier: Apache-2.0
 * The queue of a GPU over the files of several users (policy/ledger/queue.cpp, tickets.cpp, admission.cpp).
 *
 * Each process asks for memory, at first without a ticket; a refused one gives up or waits with a ticket in its user's
 * file. Files of others are read without their lock: header, tickets, accounts, in steps of their own. Whoever waits
 * looks again after each change. A process may be killed in any step, stopped for good in any step, or oversleep, so
 * that it has not looked for kLooksWithin. With HOSTILE the third user's file says anything, and changes what it says.
 * With SHARED the second and third process are one user's. Numbers are unique here, as nanoseconds are.
 *
 * Shown: never is more granted than there is; nobody waits for ever for one that is dead, stopped or hostile, beyond
 * what that one holds or could hold as a job; nobody is passed more than MAX_PAST + AT_ONCE times, and never
 * by one that takes its memory and asks for no less.
 *
 * Case:
 * Case: -DSHARED
 * Case: -DHOSTILE
 * Case: -DREQUESTS=1 -DKILLS=1
 */
#ifndef FAULT
#define FAULT 0
#endif
#ifndef REACH
#define REACH 0
#endif
/* The case in which a fault is found, or a state reached. */
#if FAULT == 1 || FAULT == 2 || REACH == 1 || REACH == 2 || REACH == 10
#define REQUESTS 1
#define KILLS 1
#elif FAULT == 3 || REACH == 6
#define HOSTILE
#endif
#ifndef KILLS
#define KILLS 0
#endif
#ifndef REQUESTS
#define REQUESTS 2
#endif
#define PROCESSES 3
#define CAPACITY 2
#define MAX_PAST 1  /* kMaxPast */
#define AT_ONCE 1   /* passes by those who decide at the same moment */
#define PATIENCE 1  /* rounds in which others' later claims are waited for: kPatienceWithOthers */
#define NUMBERS 10  /* those of a hostile file are 0 or the last */
#ifdef HOSTILE
#define BIG 1
#define MOST 1      /* of a job, by the system's file */
#define hostile(p) ((p) == 2)
#else
#define BIG 2
#define MOST 2
#define hostile(p) false
#endif
#ifdef SHARED
#define file_of(p) ((p) == 0 -> 0 : 1)
#else
#define file_of(p) (p)
#endif

#define at_most(a, b) ((a) < (b) -> (a) : (b))
#define reached(n) assert(REACH != n)

mtype = { unused, claimed, granted };

/* In a process's user's file. */
mtype account[PROCESSES] = unused;
byte number[PROCESSES], reserved[PROCESSES];  /* of the account */
bool ticket[PROCESSES], stale[PROCESSES];     /* stale: it has not looked for kLooksWithin */
byte order[PROCESSES], wanted[PROCESSES];     /* of the ticket */
byte granted_in[PROCESSES];                   /* the latest number that was granted: kLatest is 1, as MAX_PAST is */

/* Read by a process so far. Apart from it, so that a number can be made smaller that nobody compares any more. */
typedef Look { byte order[PROCESSES], bytes[PROCESSES], past };
Look seen[PROCESSES];

bool dead[PROCESSES], stopped[PROCESSES], changed[PROCESSES], answered[PROCESSES];

/* Never read by a process. */
byte passes[PROCESSES];
bool overslept[PROCESSES];

#define promised_to(p) (account[p] == granted && !dead[p] && !hostile(p) -> reserved[p] : 0)
#define all_promised (promised_to(0) + promised_to(1) + promised_to(2))

inline change_all() { changed[0] = ticket[0]; changed[1] = ticket[1]; changed[2] = ticket[2] && !hostile(2) }

#define note_past(n) if :: n > seen[me].past -> seen[me].past = n :: else fi

#define later_than(m) if :: m >= mine && m < NUMBERS -> mine = m + 1 :: else fi

/* next_order(): later than all that anybody may compare with it. What was granted before all of these is forgotten. */
inline next_order() {
    n = NUMBERS;
    for (p : 0 .. PROCESSES - 1) {
        n = (order[p] > 0 && order[p] < n -> order[p] : n);
        n = (number[p] > 0 && number[p] < n -> number[p] : n);
        n = (seen[0].order[p] > 0 && seen[0].order[p] < n -> seen[0].order[p] : n);
        n = (seen[1].order[p] > 0 && seen[1].order[p] < n -> seen[1].order[p] : n);
        n = (seen[2].order[p] > 0 && seen[2].order[p] < n -> seen[2].order[p] : n)
    };
    mine = 1;
    for (p : 0 .. PROCESSES - 1) {
        if
        :: !hostile(p) && granted_in[p] < n -> granted_in[p] = 0
        :: else
        fi;
        if
        :: seen[p].past < n -> seen[p].past = 0
        :: else
        fi;
        later_than(order[p]);
        later_than(number[p]);
        later_than(granted_in[p]);
        later_than(seen[p].past);
        later_than(seen[0].order[p]);
        later_than(seen[1].order[p]);
        later_than(seen[2].order[p])
    };
    assert(mine < NUMBERS);
    n = 0;
    p = 0
}
/* waits() and waiter_of(), and Queue::add() for those in front. Bytes of 0: nothing is kept for it. */
inline read_ticket(p) {
    seen[me].order[p] = order[p];
    seen[me].bytes[p] = 0;
    if
#if FAULT == 1  /* a ticket counts whether or not its process lives */
    :: ticket[p] && !stale[p] && order[p] < mine ->
#elif FAULT == 2  /* a ticket counts whether or not its process looks */
    :: ticket[p] && !dead[p] && order[p] < mine ->
#else
    :: ticket[p] && !dead[p] && !stale[p] && order[p] < mine ->
#endif
#if FAULT == 3  /* as much is kept as the ticket says, as long as the GPU has it */
       seen[me].bytes[p] = (wanted[p] <= CAPACITY -> wanted[p] : 0)
#else
       seen[me].bytes[p] = (wanted[p] <= CAPACITY -> at_most(wanted[p], MOST) : 0)
#endif
    :: else ->
       if
       :: ticket[p] && dead[p] && order[p] < mine -> reached(1)
       :: ticket[p] && !dead[p] && stale[p] && order[p] < mine -> reached(2)
       :: else
       fi
    fi
}

/* add_account(), and Queue::drop(). */
inline read_account(p, waits) {
    if
    :: dead[p] || account[p] == unused
    :: !dead[p] && account[p] == claimed && waits && number[p] > mine -> undecided = true; reached(3)
    :: !dead[p] && account[p] != unused && !(account[p] == claimed && waits && number[p] > mine) ->
       if
       :: account[p] == claimed -> note_past(number[p])
       :: else
       fi;
       if
       :: seen[me].bytes[p] > 0 && seen[me].order[p] == number[p] -> seen[me].bytes[p] = 0; reached(4)
       :: else
       fi;
       promised = promised + at_most(reserved[p], MOST)
    fi
}

/* add_foreign() and add_file(), with cap(): a file's header and tickets, then its accounts. */
inline read_file(f) {
    if
    :: f == file_of(me)
    :: atomic { f != file_of(me) ->
          d_step {
              note_past(granted_in[f]);
              for (p : 0 .. PROCESSES - 1) {
                  if
                  :: file_of(p) == f -> read_ticket(p)
                  :: else
                  fi
              };
              p = 0
          }
       };
       d_step {
           for (p : 0 .. PROCESSES - 1) {
               if
               :: file_of(p) == f -> read_account(p, rounds < PATIENCE)
               :: else
               fi
           };
           p = 0
       }
    fi
}

/* AdmissionControl::add_own(), under the file's lock. */
inline add_own() {
    note_past(granted_in[file_of(me)]);
    for (p : 0 .. PROCESSES - 1) {
        if
        :: p != me && file_of(p) == file_of(me) -> read_ticket(p); read_account(p, true)
        :: else
        fi
    };
    p = 0
}

/* AdmissionControl::room() and Queue::room(), the oldest first. Granted::past() counts the later numbers. */
#if FAULT == 4  /* a request may be passed any number of times */
#define passed_too_often false
#else
#define passed_too_often (seen[me].past > n)
#endif
inline room() {
    left = (promised < CAPACITY -> CAPACITY - promised : 0);
    for (n : 0 .. NUMBERS) {
        for (p : 0 .. PROCESSES - 1) {
            if
            :: seen[me].bytes[p] > 0 && seen[me].order[p] == n && (seen[me].bytes[p] <= left || passed_too_often) ->
               if
               :: seen[me].bytes[p] > left && left >= need -> reached(5)
               :: hostile(p) && left >= need && left < need + seen[me].bytes[p] -> reached(6)
               :: else
               fi;
               left = left - at_most(seen[me].bytes[p], left)
            :: else
            fi
        }
    };
    n = 0;
    p = 0
}

inline forget_look(q) {
    seen[q].past = 0;
    seen[q].order[0] = 0; seen[q].order[1] = 0; seen[q].order[2] = 0;
    seen[q].bytes[0] = 0; seen[q].bytes[1] = 0; seen[q].bytes[2] = 0
}

inline forget() {
    promised = 0;
    undecided = false;
    forget_look(me)
}

/* The request is granted to `me`, whose number is later than that of one that waits. */
inline note_passes() {
    for (p : 0 .. PROCESSES - 1) {
        if
        :: p != me && ticket[p] && !dead[p] && !hostile(p) && !overslept[p] && order[p] < mine &&
           account[p] == unused ->
           passes[p]++;
           reached(7);
           if
           :: passes[p] > MAX_PAST -> reached(8)
           :: else
           fi;
           assert(passes[p] <= MAX_PAST + AT_ONCE);
           assert(need < wanted[p] || all_promised + wanted[p] <= CAPACITY)
        :: else
        fi
    };
    p = 0
}

proctype Process(byte me; byte requests; bool waits) {
    byte need, mine, promised, rounds, left, n, p;
    bool undecided;
    {
        do
        :: requests > 0 ->
           atomic {
               requests--;
               if
               :: me != 0 -> need = 1
               :: me != 1 -> need = BIG
               fi;
               if
               :: !waits -> next_order()
               :: waits ->
                  /* AdmissionControl::queue_up(): OwnTicket::take() */
                  d_step {
                      next_order();
                      order[me] = mine;
                      wanted[me] = need;
                      ticket[me] = true;
                      change_all()
                  };
                  goto looks
               fi;
               /* AdmissionControl::begin(): the number is the ticket's, else a new one */
claims:
               skip;
               d_step {
                   number[me] = mine;
                   reserved[me] = need;
                   account[me] = claimed;
                   change_all()
               }
           };
           /* AdmissionControl::join() */
reads:
           read_file(0);
           read_file(1);
           read_file(2);
           atomic {
               d_step { add_own(); room() };
               if
               :: undecided && rounds <= PATIENCE -> d_step { rounds++; left = 0; forget() }; goto reads
               :: else
               fi;
               if
               :: left >= need ->
                  d_step {
                      if
                      :: passes[me] >= MAX_PAST -> reached(9)
                      :: overslept[me] -> reached(10)
                      :: else
                      fi;
#if FAULT != 5  /* note_granted() is left out */
                      granted_in[file_of(me)] = (mine > granted_in[file_of(me)] -> mine : granted_in[file_of(me)]);
#endif
                      /* OwnTicket::drop() */
                      ticket[me] = false;
                      account[me] = granted;
                      assert(all_promised <= CAPACITY);
                      note_passes();
                      order[me] = 0; wanted[me] = 0; passes[me] = 0; overslept[me] = false;
                      stale[me] = false; changed[me] = false;
                      forget();
                      rounds = 0; left = 0; mine = 0; need = 0;
                      change_all()
                  }
               :: else ->
                  d_step {
                      account[me] = unused; number[me] = 0; reserved[me] = 0;
                      forget();
                      rounds = 0; left = 0;
                      change_all()
                  };
                  if
                  :: waits -> goto looks
                  :: !waits -> mine = 0; need = 0; goto next
                  fi
               fi
           };
           /* The job ends. */
           d_step { account[me] = unused; number[me] = 0; reserved[me] = 0; change_all() };
           goto next;
           /* AdmissionControl::look() */
looks:
           changed[me] = false;
           read_file(0);
           read_file(1);
           read_file(2);
           atomic {
               d_step {
                   if
                   :: stale[me] -> stale[me] = false; change_all()
                   :: else
                   fi;
                   add_own();
                   room();
                   forget()
               };
               if
               :: left >= need -> left = 0; goto claims
               :: else -> left = 0
               fi
           };
end_waits:
           changed[me] -> goto looks;
next:
           skip
        :: else -> break
        od;
        answered[me] = true
    } unless {
        atomic {
            dead[me] || stopped[me];
            need = 0; mine = 0; promised = 0; rounds = 0; left = 0; n = 0; p = 0; undecided = false; requests = 0
        }
    }
}

/* A file that its user writes what he likes into. */
inline lie() {
    if
    :: ticket[2] = true; order[2] = 0; wanted[2] = CAPACITY
    :: ticket[2] = true; order[2] = NUMBERS; wanted[2] = CAPACITY
    :: ticket[2] = true; order[2] = 0; wanted[2] = CAPACITY + 1
    :: ticket[2] = false; order[2] = 0; wanted[2] = 0
    fi;
    if
    :: account[2] = unused; number[2] = 0
    :: account[2] = claimed; number[2] = 0
    :: account[2] = claimed; number[2] = NUMBERS
    :: account[2] = granted; number[2] = 0
    fi;
    reserved[2] = CAPACITY + 1;
    if
    :: granted_in[2] = 0
    :: granted_in[2] = NUMBERS
    fi;
    change_all()
}

active proctype Killer() {
    byte kills, victim;
    atomic {
        run Process(0, 1, true);
#ifdef HOSTILE
        run Process(1, 1, true);
        lie()
#else
        run Process(1, REQUESTS, false);
        if
        :: run Process(2, 1, true)
        :: run Process(2, REQUESTS, false)
        fi
#endif
    };
#ifdef HOSTILE
    atomic { lie() };
#endif
    do
    :: kills < KILLS ->
       atomic {
           kills++;
           if
           :: victim = 0
           :: victim = 1
           :: victim = 2
           fi;
           if
           :: !answered[victim] ->
              dead[victim] = true;
              account[victim] = unused; number[victim] = 0; reserved[victim] = 0;  /* nobody counts the dead's */
              passes[victim] = 0; overslept[victim] = false; changed[victim] = false;
              forget_look(victim)
           :: !hostile(victim) && !answered[victim] ->
              stopped[victim] = true;
              forget_look(victim)
           :: !hostile(victim) && ticket[victim] -> overslept[victim] = true; stale[victim] = true
           :: else
           fi;
           change_all()
       };
       if
       :: stopped[victim] && ticket[victim] -> atomic { overslept[victim] = true; stale[victim] = true; change_all() }
       :: else
       fi;
       victim = 0
    :: break
    od
}

/* Bytes that one has, or could have, who is stopped or hostile. */
#define kept_by(q) (dead[q] -> 0 : \
    (stopped[q] && account[q] != unused -> reserved[q] : \
    (hostile(q) && account[q] != unused -> at_most(reserved[q], MOST) : 0) + \
    (hostile(q) && ticket[q] && wanted[q] <= CAPACITY -> at_most(wanted[q], MOST) : 0)))
#define hopeless(p) (wanted[p] + kept_by(0) + kept_by(1) + kept_by(2) > CAPACITY)
#define waits_in_vain(q, p) (ticket[q] && !dead[q] && !stopped[q] && !hostile(q) && order[q] < order[p] && hopeless(q))
#define settled(p) (dead[p] || stopped[p] || hostile(p) || answered[p] || \
    (ticket[p] && (hopeless(p) || waits_in_vain(0, p) || waits_in_vain(1, p) || waits_in_vain(2, p))))

/* Whoever waits is answered in the end. */
active proctype Checker() {
    settled(0) && settled(1) && settled(2)
}
