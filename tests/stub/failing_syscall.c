// SPDX-License-Identifier: Apache-2.0
// Fails one of the system calls that the stub makes in a program: it makes them itself, past the C library.
//
//   failing_syscall NUMBER ERROR FILE PROGRAM WORDS…
//
// The NUMBER-th of them, from 1, fails with ERROR; 0: none does. FILE gets how many there were. Exits as the program
// does, with 128 and its signal, or with 99 where it runs for a minute.
#include <elf.h>

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t program;

static void end_program(int signal) {
    (void)signal;
    kill(program, SIGKILL);
    _exit(99);
}

struct range {
    uint64_t begin, end;
};

// The code of the stub in the program; empty if it isn't there yet.
static struct range find_stub(void) {
    char path[64], line[4096];
    struct range found = {0, 0};
    snprintf(path, sizeof(path), "/proc/%d/maps", program);
    FILE* const maps = fopen(path, "r");
    while (maps && !found.end && fgets(line, sizeof(line), maps)) {
        unsigned long begin, end;
        char access[5];
        if (sscanf(line, "%lx-%lx %4s", &begin, &end, access) != 3 || access[2] != 'x')
            continue;
        if (strstr(line, "/libcuslice-preload.so"))
            found = (struct range){begin, end};
    }
    if (maps)
        fclose(maps);
    return found;
}

static bool is_in(const struct range* range, uint64_t address) {
    return address >= range->begin && address < range->end;
}

// No system call has this number, so the kernel does nothing.
static void skip_call(void) {
#if defined(__x86_64__)
    ptrace(PTRACE_POKEUSER, program, offsetof(struct user_regs_struct, orig_rax), -1L);
#elif defined(__aarch64__)
    int none = -1;
    struct iovec bytes = {&none, sizeof(none)};
    ptrace(PTRACE_SETREGSET, program, NT_ARM_SYSTEM_CALL, &bytes);
#endif
}

static void answer(long value) {
#if defined(__x86_64__)
    ptrace(PTRACE_POKEUSER, program, offsetof(struct user_regs_struct, rax), value);
#elif defined(__aarch64__)
    struct user_regs_struct registers;
    struct iovec bytes = {&registers, sizeof(registers)};
    ptrace(PTRACE_GETREGSET, program, NT_PRSTATUS, &bytes);
    registers.regs[0] = (unsigned long)value;
    ptrace(PTRACE_SETREGSET, program, NT_PRSTATUS, &bytes);
#endif
}

int main(int count, char** words) {
    if (count < 5)
        return 64;
    const long wanted = atol(words[1]), error = atol(words[2]);
    program = fork();
    if (program == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execv(words[4], words + 4);
        _exit(127);
    }
    signal(SIGALRM, end_program);
    alarm(60);
    int status = 0;
    waitpid(program, &status, 0);
    ptrace(PTRACE_SETOPTIONS, program, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
    struct range stub = {0, 0};
    long calls = 0;
    bool failing = false;
    for (int signal = 0;;) {
        ptrace(PTRACE_SYSCALL, program, 0, signal);
        if (waitpid(program, &status, 0) != program || WIFEXITED(status) || WIFSIGNALED(status))
            break;
        signal = 0;
        if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
            stub = (struct range){0, 0};
            continue;
        }
        if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
            signal = WSTOPSIG(status);
            continue;
        }
        struct __ptrace_syscall_info info;
        ptrace(PTRACE_GET_SYSCALL_INFO, program, sizeof(info), &info);
        if (info.op == PTRACE_SYSCALL_INFO_EXIT && failing)
            answer(-error);
        failing = false;
        if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
            continue;
        if (!stub.end)
            stub = find_stub();
        if (!is_in(&stub, info.instruction_pointer) || ++calls != wanted)
            continue;
        failing = true;
        skip_call();
    }
    FILE* const file = fopen(words[3], "w");
    if (file)
        fprintf(file, "%ld\n", calls), fclose(file);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
