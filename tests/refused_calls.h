// SPDX-License-Identifier: Apache-2.0
// System calls that a kernel lacks, or that a sandbox refuses.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

namespace cuslice::tests {

/// From now on the kernel asks `program` about each call of this thread and of those that it starts. False where calls
/// can't be filtered.
template <unsigned short count>
bool filter_calls(sock_filter (&program)[count]) {
    const sock_fprog filter{count, program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// From now on this call of theirs is answered with `error`.
inline bool refuse_call(unsigned call, unsigned error) {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return filter_calls(program);
}

/// The same of this call where the argument at place `which`, from 0 on, is one of [from, to].
inline bool refuse_commands(unsigned call, unsigned which, unsigned from, unsigned to, unsigned error) {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 static_cast<unsigned>(offsetof(seccomp_data, args) + which * sizeof(seccomp_data::args[0]))),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, from, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, to, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return filter_calls(program);
}

}  // namespace cuslice::tests
