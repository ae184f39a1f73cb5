// SPDX-License-Identifier: Apache-2.0
// Somebody who wants to be started with the rights of a program that has more than they have: two links are exchanged
// all the time, one to that program and one to this one, and one of the names is started again and again.
//
//   race PROGRAM TRIES    exits 0 if it was never started with more rights than its user, in a folder of the user's own
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail(const char* what) {
    perror(what);
    return 126;
}

static void exchange(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        if (renameat2(AT_FDCWD, "name", AT_FDCWD, "other", RENAME_EXCHANGE) != 0)
            _exit(fail("exchange"));
}

static void start(char** words, char** environment) {
    const int nowhere = open("/dev/null", O_RDWR);
    for (int descriptor = 0; descriptor < 3; descriptor++)
        dup2(nowhere, descriptor);
    execve("name", words, environment);
    _exit(126);
}

int main(int count, char** words, char** environment) {
    struct stat about;
    if (geteuid() != getuid() || getegid() != getgid()) {
        fclose(fopen("gained", "w"));
        return 0;
    }
    if (count < 3)
        return 0;  // started as this user: nothing is gained
    char own[4096] = "";
    if (readlink("/proc/self/exe", own, sizeof own - 1) < 0)
        return fail("own path");
    if (symlink(words[1], "name") != 0 || symlink(own, "other") != 0)
        return fail("links");
    const pid_t exchanger = fork();
    if (exchanger == 0)
        exchange();
    int tries = atoi(words[2]);
    char* none[] = {"name", NULL};
    for (; tries > 0 && stat("gained", &about) != 0; tries--) {
        const pid_t child = fork();
        if (child == 0)
            start(none, environment);
        waitpid(child, NULL, 0);
    }
    kill(exchanger, SIGKILL);
    waitpid(exchanger, NULL, 0);
    if (stat("gained", &about) != 0)
        return 0;
    printf("started with more rights, %d tries before the last\n", tries);
    return 1;
}
