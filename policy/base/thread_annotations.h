// SPDX-License-Identifier: Apache-2.0
#pragma once

// Facts about locks for clang's -Wthread-safety (scripts/thread_safety.sh); other compilers are told nothing. See
// https://clang.llvm.org/docs/ThreadSafetyAnalysis.html.
#ifdef __clang__
#define CUSLICE_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define CUSLICE_THREAD_ANNOTATION(x)
#endif

// On a class: it is a lock, or has a lock held for as long as it lives.
#define CUSLICE_CAPABILITY CUSLICE_THREAD_ANNOTATION(capability("mutex"))
#define CUSLICE_SCOPED_CAPABILITY CUSLICE_THREAD_ANNOTATION(scoped_lockable)
// On a variable: it is only read or written with the lock held.
#define CUSLICE_GUARDED_BY(mutex) CUSLICE_THREAD_ANNOTATION(guarded_by(mutex))
// On a function: the caller has the lock, or must not have it; it takes it, or does so if it returns this; gives it
// back.
#define CUSLICE_REQUIRES(...) CUSLICE_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define CUSLICE_EXCLUDES(...) CUSLICE_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define CUSLICE_ACQUIRE(...) CUSLICE_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define CUSLICE_TRY_ACQUIRE(...) CUSLICE_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define CUSLICE_RELEASE(...) CUSLICE_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
// It returns only if the caller has the lock.
#define CUSLICE_ASSERT_HELD(...) CUSLICE_THREAD_ANNOTATION(assert_capability(__VA_ARGS__))
// It returns this lock.
#define CUSLICE_RETURNS(mutex) CUSLICE_THREAD_ANNOTATION(lock_returned(mutex))
// It is not looked at, for the reason that stands there.
#define CUSLICE_UNCHECKED CUSLICE_THREAD_ANNOTATION(no_thread_safety_analysis)
