/* SPDX-License-Identifier: Apache-2.0
 * Memory orders of a total and its stripes, and of the header's lock (policy/ledger/total.h, header_lock.cpp).
 *
 * Each location is a list of writes. A process has a view: of each location the oldest write that it may still read. A
 * load reads that one or any later one. A release gives its write the writer's view, an acquire joins the view of the
 * write that it reads, and a read-modify-write reads the last write and hands on the view of that. Sequentially
 * consistent accesses are taken for no more than acquire and release. The two halves of a total are written together
 * and read apart. A process is killed in any step; who finds it dead, by its lock in the kernel, has its view.
 *
 * CASE 1: the stamp of a process is replaced while it is killed, two others take back what it held, and its slot is
 * used again. Shown as in total.pml: what its last operation did is told right, nothing is taken back twice or left.
 * CASE 2: a file is retired while a process is at work in it. Shown: held_now() tells what it held then, or since.
 * CASE 3: who waits for the lock knows its holder by the signature alone. Shown: nobody takes it from one that lives.
 * CASE 4: two change a total and one reads its peak. Shown: peak_of() is no less than the total was before.
 * WEAK: with weaker orders than the sources have in four places at once all of this is shown as well.
 *
 * Case: -DCASE=4
 * Case: -DCASE=2
 * Case: -DCASE=3
 * Case: -DCASE=1
 * Case: -DCASE=4 -DWEAK
 * Case: -DCASE=2 -DWEAK
 * Case: -DCASE=3 -DWEAK
 * Case: -DCASE=1 -DWEAK
 */
#ifndef FAULT
#define FAULT 0
#endif
#ifndef REACH
#define REACH 0
#endif
/* The case in which a fault is found, or a state reached. */
#ifndef CASE
#if FAULT == 1 || FAULT == 2 || FAULT == 6 || REACH == 11
#define CASE 4
#elif FAULT == 9 || FAULT == 10 || REACH > 20
#define CASE 3
#elif FAULT == 7 || FAULT == 8 || FAULT == 11 || (REACH > 0 && REACH < 10)
#define CASE 1
#else
#define CASE 2
#endif
#endif
#define RETIRED 64
#define WRITES 7
#if CASE == 3
#define LOCATIONS 4
#define HOLDER 0
#define SIGNED_BY 1
#define LOCKER 2
#define START 3
#else
#define BYTES 0
#define STAMP 1
#define BEGUN 2      /* these six of the stripe of process 0 */
#define COMPLETED 3
#define HELD 4
#define BEFORE 5
#define DELTA 6
#define REPLACED 7
#if CASE == 1
#define LOCATIONS 10
#define HOLDER 8
#define STATE 9      /* of the member of process 0: 1 is live */
#elif CASE == 2
#define LOCATIONS 8
#else
#define LOCATIONS 9
#define PEAK 8
#endif
#endif
#if CASE == 1
#define PROCESSES 4
#else
#define PROCESSES 3
#endif
#define reached(n) assert(REACH != n)
#define RELAXED false
#define ACQUIRE true
#define RELEASE true

typedef Write { byte value, view[LOCATIONS] };
typedef Location { Write writes[WRITES]; byte last };
typedef View { byte at[LOCATIONS] };
Location memory[LOCATIONS];
View view[PROCESSES];
bool dead[PROCESSES];

inline join(location, write) {
    for (l : 0 .. LOCATIONS - 1) {
        if
        :: memory[location].writes[write].view[l] > view[me].at[l] ->
           view[me].at[l] = memory[location].writes[write].view[l]
        :: else
        fi
    };
    l = 0
}

inline load(location, acquires, result) {
    atomic {
        w = view[me].at[location];
        do
        :: w < memory[location].last -> w++
        :: break
        od;
        d_step {
            result = memory[location].writes[w].value;
            view[me].at[location] = w;
            if
            :: acquires -> join(location, w)
            :: else
            fi;
            w = 0
        }
    }
}

/* The next write of a location: with the writer's view, or that of the write before where `follows`. */
inline append(location, new_value, releases, follows) {
    assert(memory[location].last + 1 < WRITES);
    w = memory[location].last + 1;
    memory[location].last = w;
    memory[location].writes[w].value = new_value;
    view[me].at[location] = w;
    for (l : 0 .. LOCATIONS - 1) {
        if
        :: follows -> memory[location].writes[w].view[l] = memory[location].writes[w - 1].view[l]
        :: else
        fi;
        if
        :: releases && view[me].at[l] > memory[location].writes[w].view[l] ->
           memory[location].writes[w].view[l] = view[me].at[l]
        :: else
        fi
    };
    memory[location].writes[w].view[location] = w;
    l = 0;
    w = 0
}
inline store(location, new_value, releases) { d_step { append(location, new_value, releases, false) } }

#define newest(location) memory[location].writes[memory[location].last].value

inline find_dead(process) {
    for (l : 0 .. LOCATIONS - 1) {
        if
        :: view[process].at[l] > view[me].at[l] -> view[me].at[l] = view[process].at[l]
        :: else
        fi
    };
    l = 0
}

/* take(), from nobody or from one that is dead; unlock_header(). */
#if FAULT == 7  /* the lock's acquire is relaxed */
#define LOCK_ACQUIRES RELAXED
#else
#define LOCK_ACQUIRES ACQUIRE
#endif
#if FAULT == 8  /* the lock's release is relaxed */
#define LOCK_RELEASES RELAXED
#else
#define LOCK_RELEASES RELEASE
#endif
inline take(from) {
    d_step {
        if
        :: LOCK_ACQUIRES -> join(HOLDER, memory[HOLDER].last)
        :: else
        fi;
        append(HOLDER, me + 1, RELAXED, true)
    }
}
inline unlock_header() { d_step { append(HOLDER, 0, LOCK_RELEASES, true) } }

#if CASE == 3
bool inside[PROCESSES];

/* sign() */
#if FAULT == 9  /* the signature is published by a relaxed store */
#define SIGN_RELEASES RELAXED
#else
#define SIGN_RELEASES RELEASE
#endif
#if FAULT == 10  /* the signature is read by a relaxed load */
#define SIGN_ACQUIRES RELAXED
#else
#define SIGN_ACQUIRES ACQUIRE
#endif
inline sign() {
#ifndef WEAK  /* no signature stands there meanwhile */
    store(SIGNED_BY, 0, RELEASE);
#endif
    store(START, me + 1, RELAXED);
#ifdef WEAK
    store(LOCKER, me + 1, RELAXED);
#else
    store(LOCKER, me + 1, RELEASE);
#endif
    store(SIGNED_BY, me + 1, SIGN_RELEASES)
}

/* lock_header_until(), and has_ended() where the holder's presence is missing. Process 0 comes first and goes. */
proctype Locking(byte me) {
    byte l, w, holder, signed_by, locker, start;
    {
        skip;
again:
        if
        :: atomic { newest(HOLDER) == 0 -> take(0); inside[me] = true; assert(inside[0] + inside[1] + inside[2] == 1) }
        :: atomic { newest(HOLDER) != 0 -> skip };
           load(HOLDER, ACQUIRE, holder);
           if
           :: holder == 0 || holder == me + 1 -> holder = 0; goto again
           :: else
           fi;
           load(SIGNED_BY, SIGN_ACQUIRES, signed_by);
           if
           :: signed_by == holder ->
              load(LOCKER, RELAXED, locker);
              load(START, RELAXED, start)
           :: else -> atomic { holder = 0; signed_by = 0; goto again }
           fi;
           if
           :: locker != start || locker == 0 || dead[locker - 1] ->
              reached(21);
              atomic {
                  if
                  :: newest(HOLDER) == holder ->
                     take(holder);
                     inside[me] = true;
                     assert(inside[0] + inside[1] + inside[2] == 1);
                     reached(22)
                  :: else -> holder = 0; signed_by = 0; locker = 0; start = 0; reached(23); goto again
                  fi
              }
           :: else -> atomic { holder = 0; signed_by = 0; locker = 0; start = 0; goto again }
           fi
        fi;
        sign();
        inside[me] = false;
        unlock_header();
        dead[me] = true
    } unless { dead[me] };
    skip
}
active proctype Killer() {
    atomic { run Locking(0); run Locking(1); run Locking(2) };
    if
    :: d_step { !dead[0] -> dead[0] = true; inside[0] = false }
    :: d_step { !dead[1] -> dead[1] = true; inside[1] = false }
    :: skip
    fi
}
#else

/* Never read by a process: what process 0 holds, and a bit for each amount that it has held since the retirement. */
byte truth, since_retired;

#define STAMP_OF(stripe, sequence) ((stripe) * 8 + (sequence))
#define stripe_of(stamp) ((stamp) / 8)
#define sequence_of(stamp) ((stamp) % 8)

#if FAULT == 1  /* a total is read by relaxed loads */
#define READ_ACQUIRES RELAXED
#else
#define READ_ACQUIRES ACQUIRE
#endif
/* read() */
inline read(stamp, bytes) {
    load(STAMP, READ_ACQUIRES, stamp);
    load(BYTES, READ_ACQUIRES, bytes)
}

/* exchange(): both halves at once, if these are the last. */
#if FAULT == 2  /* the exchange releases nothing, as without the l of stlxp */
#define EXCHANGE_RELEASES RELAXED
#else
#define EXCHANGE_RELEASES RELEASE
#endif
#ifdef WEAK
#define EXCHANGE_ACQUIRES RELAXED
#else
#define EXCHANGE_ACQUIRES ACQUIRE
#endif
inline exchange(old_stamp, old_bytes, new_stamp, new_bytes, success) {
    d_step {
        success = newest(STAMP) == old_stamp && newest(BYTES) == old_bytes;
        if
        :: EXCHANGE_ACQUIRES -> join(STAMP, memory[STAMP].last)
        :: else
        fi;
        if
        :: success ->
           view[me].at[STAMP] = memory[STAMP].last + 1;
           view[me].at[BYTES] = memory[BYTES].last + 1;
           append(STAMP, new_stamp, EXCHANGE_RELEASES, true);
           append(BYTES, new_bytes, EXCHANGE_RELEASES, true);
           if
           :: stripe_of(new_stamp) == 0 ->
              truth = truth + new_bytes - old_bytes;
              since_retired = since_retired | (1 << truth)
           :: else
           fi
        :: else
        fi
    }
}
/* A loop of compare-exchanges towards the larger number; one that fails is a load. */
#if FAULT == 14  /* relaxed ones */
#define RAISE_ORDER RELAXED
#else
#define RAISE_ORDER RELEASE
#endif
inline raise(location, target) {
    load(location, RELAXED, known);
    do
    :: known < target ->
       if
       :: d_step { newest(location) == known ->
             if
             :: RAISE_ORDER -> join(location, memory[location].last)
             :: else
             fi;
             append(location, target, RAISE_ORDER, true);
             known = target
          }
       :: newest(location) != known -> load(location, RAISE_ORDER, known)
       fi
    :: else -> break
    od;
    known = 0
}

/* note_replaced(): of process 0's stripe alone. */
inline note_replaced(stamp) { raise(REPLACED, sequence_of(stamp)) }

/* note_peak() */
#if CASE == 4
inline note_peak(total) { raise(PEAK, total) }
#else
inline note_peak(total) { skip }
#endif

/* What a store of the stripe releases. */
#if FAULT == 4
#define BEGUN_RELEASES RELAXED
#else
#define BEGUN_RELEASES RELEASE
#endif
#if FAULT == 5
#define COMPLETED_RELEASES RELAXED
#else
#define COMPLETED_RELEASES RELEASE
#endif
#if FAULT == 12
#define DELTA_RELEASES RELAXED
#else
#define DELTA_RELEASES RELEASE
#endif
#if FAULT == 13
#define BEFORE_RELEASES RELAXED
#else
#define BEFORE_RELEASES RELEASE
#endif
#ifdef WEAK
#define HELD_RELEASES RELAXED
#else
#define HELD_RELEASES RELEASE
#endif

/* change() and change_slowly(), of process 0's stripe. The change is no more than 1 up or down. */
#define gets 0
#define gives 1
inline change(gives_back) {
    load(COMPLETED, RELAXED, sequence);
    load(HELD, RELAXED, before);
    sequence++;
    store(DELTA, 2 - gives_back, DELTA_RELEASES);
    store(BEFORE, before, BEFORE_RELEASES);
    store(BEGUN, sequence, BEGUN_RELEASES);
    exchanged = false;
    do
    :: read(stamp, bytes);
       if
       :: gives_back == gives ->
#if FAULT != 6  /* the peak isn't noted before the total falls */
          note_peak(bytes % RETIRED)
#else
          skip
#endif
       :: gives_back == gets && bytes >= RETIRED -> break  /* what is torn is read again */
       :: else
       fi;
       exchange(stamp, bytes, STAMP_OF(0, sequence), bytes + 1 - 2 * gives_back, exchanged);
       if
       :: exchanged -> break
       :: else
       fi
    od;
    if
    :: exchanged -> store(HELD, before + 1 - 2 * gives_back, HELD_RELEASES)
    :: else
    fi;
    store(COMPLETED, sequence, COMPLETED_RELEASES);
    d_step { sequence = 0; before = 0; stamp = 0; bytes = 0; exchanged = false }
}

/* The process that is killed, or whose file is retired: it takes one, and gives one back. */
proctype Owner(byte me) {
    byte l, w, known, sequence, before, stamp, bytes;
    bool exchanged;
    {
        change(gets);
        if
        :: newest(HELD) > 0 -> change(gives)
        :: else
        fi
    } unless { dead[me] };
    skip
}

/* Another process that changes the total: it holds 1 at first and gives that back. */
proctype Other(byte me) {
    byte l, w, known, stamp, bytes;
    bool exchanged;
    do
    :: read(stamp, bytes);
       note_peak(bytes % RETIRED);
       if
#if FAULT == 3  /* a stamp is replaced without a note */
       :: false
#else
       :: stripe_of(stamp) == 0 && sequence_of(stamp) > 0 -> note_replaced(stamp)
#endif
       :: else
       fi;
       exchange(stamp, bytes, STAMP_OF(1, 1), bytes - 1, exchanged);
       if
       :: exchanged -> break
       :: else
       fi
    od;
    skip;
    d_step { stamp = 0; bytes = 0; exchanged = false }
}
#if CASE == 1
/* resolve() */
inline resolve() {
    load(BEGUN, ACQUIRE, sequence);
    load(COMPLETED, ACQUIRE, known);
    if
    :: sequence > known ->
       read(stamp, bytes);
       do  /* read_whole() */
       :: read(again_stamp, again_bytes);
          if
          :: again_stamp == stamp && again_bytes == bytes -> break
          :: else -> d_step { stamp = again_stamp; bytes = again_bytes }
          fi
       od;
       happened = (stamp == STAMP_OF(0, sequence));
       d_step { again_stamp = 0; again_bytes = 0; bytes = 0 };
       if
       :: !happened ->
          load(REPLACED, ACQUIRE, known);
          happened = known >= sequence;
          if
          :: happened -> reached(1)
          :: else -> reached(2)
          fi
       :: else -> reached(3)
       fi;
       load(BEFORE, ACQUIRE, before);
       load(DELTA, ACQUIRE, delta);
       before = before + (happened && delta == 2) - (happened && delta == 1);
       store(HELD, before, RELEASE);
       store(COMPLETED, sequence, RELEASE)
    :: else
    fi;
    assert(newest(HELD) == truth);
    d_step { sequence = 0; known = 0; before = 0; delta = 0; happened = false; stamp = 0 }
}

/* Roster::take_back_if_dead(), with take_back() */
proctype Taker(byte me) {
    byte l, w, known, sequence, before, delta, stamp, bytes, again_stamp, again_bytes, state;
    bool exchanged, happened, seen_dead;
    {
        atomic { newest(HOLDER) == 0 || dead[newest(HOLDER) - 1] ->
            if
            :: newest(HOLDER) != 0 -> find_dead(newest(HOLDER) - 1); reached(4)
            :: else
            fi;
            take(0)
        };
        load(STATE, ACQUIRE, state);
        if
        :: state == 1 && dead[0] ->
#if FAULT != 11  /* the kernel orders nothing: what the dead process stored may be missing */
           d_step { find_dead(0) };
#endif
           resolve();
           load(HELD, ACQUIRE, known);
           if
           :: known > 0 -> change(gives)
           :: else
           fi;
           assert(newest(HELD) == 0 && truth == 0);
           store(STATE, 0, RELEASE)
        :: state == 0 ->
           /* The slot is another process's now. */
           reached(5);
           load(COMPLETED, RELAXED, sequence);
           load(HELD, RELAXED, known);
           assert(sequence == newest(COMPLETED) && known == 0)
        :: else
        fi;
        unlock_header()
    } unless { dead[me] };
    skip
}


active proctype Killer() {
    d_step {
        memory[STATE].writes[0].value = 1;
        memory[STAMP].writes[0].value = STAMP_OF(1, 0);
        memory[BYTES].writes[0].value = 1
    };
    atomic { run Owner(0); run Other(1); run Taker(2); run Taker(3) };
    if
    :: dead[0] = true
    :: skip
    fi;
    if
    :: dead[2] = true
    :: skip
    fi
}
#else
#if CASE == 2
/* Who has found that the file is gone; set_retired(), then held_now(). */
proctype Retirer(byte me) {
    byte l, w, known, completed, held, begun, before, delta, stamp, result;
    bool happened;
    d_step {
        if
        :: EXCHANGE_ACQUIRES || READ_ACQUIRES -> join(STAMP, memory[STAMP].last)
        :: else
        fi;
        stamp = newest(STAMP);
        result = newest(BYTES) + RETIRED;
        append(STAMP, stamp, EXCHANGE_RELEASES, true);
        append(BYTES, result, EXCHANGE_RELEASES, true);
        since_retired = 1 << truth;
        stamp = 0;
        result = 0
    };
    do
    :: load(COMPLETED, ACQUIRE, completed);
       load(HELD, ACQUIRE, held);
       load(BEGUN, ACQUIRE, begun);
       if
       :: begun <= completed -> d_step { result = held; reached(12) }; break
       :: else -> held = 0
       fi;
       load(BEFORE, ACQUIRE, before);
       load(DELTA, ACQUIRE, delta);
       load(STAMP, READ_ACQUIRES, stamp);
       happened = stamp == STAMP_OF(0, begun);
       stamp = 0;
       if
       :: happened -> reached(13)
       :: else ->
          load(REPLACED, ACQUIRE, known);
          d_step {
              happened = known >= begun;
              if
              :: happened -> reached(14)
              :: else -> reached(15)
              fi
          }
       fi;
       load(BEGUN, ACQUIRE, known);
       load(COMPLETED, ACQUIRE, completed);
       if
       :: known == begun && completed < begun ->
          result = before + (happened && delta == 2) - (happened && delta == 1);
          break
       :: else -> reached(16)
       fi;
       d_step { completed = 0; begun = 0; before = 0; delta = 0; happened = false; known = 0 }
    od;
    assert(since_retired & (1 << result))
}
#else
/* peak_of(): no less than any total before the one that it reads. */
proctype Reader(byte me) {
    byte l, w, bytes, known, most;
    load(BYTES, READ_ACQUIRES, bytes);
    d_step {
        for (w : 0 .. view[me].at[BYTES]) {
            most = (memory[BYTES].writes[w].value > most -> memory[BYTES].writes[w].value : most)
        };
        w = 0
    };
    load(PEAK, ACQUIRE, known);
    assert(bytes >= most || known >= most);
    d_step {
        if
        :: bytes < most -> reached(11)
        :: else
        fi
    }
}
#endif
active proctype Killer() {
    d_step {
        memory[HELD].writes[0].value = 1;
        truth = 1;
        memory[STAMP].writes[0].value = STAMP_OF(1, 0);
        memory[BYTES].writes[0].value = 2
    };
    atomic { run Owner(0); run Other(1);
#if CASE == 2
        run Retirer(2)
#else
        run Reader(2)
#endif
    }
}
#endif
#endif
