// SPDX-License-Identifier: Apache-2.0
// Ways from one program to the next on which an environment is lost. Built twice, the second time without a loader.
//
//   way exec PROGRAM...           becomes it, with an empty environment
//   way spawn PROGRAM...          posix_spawn() with one, and waits for it
//   way fork PROGRAM...           fork() and execve() with one, and waits for it
//   way daemon PROGRAM...         forks twice, in a session of its own, and waits for nothing
//   way twice ENTRY ENTRY PROGRAM...  becomes it, with both entries at the end of the environment
//   way drop PROGRAM...           set-user-ID: gives back the rights that it has more than its user, then becomes it
//   way jobs USER FIFO            a daemon as atd: what is written to the FIFO, a line each, is run by a shell as the
//   user way shells USER SOCKET        a daemon as sshd: whoever connects has a login shell of the user's way ask
//   SOCKET TEXT           what is typed into such a shell; its output
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char* const none[] = {NULL};
static char* const of_a_daemon[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "SHELL=/bin/sh", NULL};

static int fail(const char* what) {
    fprintf(stderr, "way: %s: %s\n", what, strerror(errno));
    return 126;
}

static int become(char** program, char* const* environment) {
    execve(program[0], program, environment);
    return fail(program[0]);
}

static int wait_for(pid_t child) {
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return fail("child");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int spawn(char** program) {
    pid_t child = -1;
    errno = posix_spawn(&child, program[0], NULL, NULL, program, none);
    return errno ? fail(program[0]) : wait_for(child);
}

static int in_child(char** program) {
    const pid_t child = fork();
    if (child == 0)
        _exit(become(program, none));
    return wait_for(child);
}

static int in_daemon(char** program) {
    const pid_t child = fork();
    if (child != 0)
        return wait_for(child);
    setsid();
    if (fork() != 0)
        _exit(0);
    const int nowhere = open("/dev/null", O_RDWR);
    if (chdir("/") != 0 || nowhere < 0)
        _exit(126);
    for (int descriptor = 0; descriptor < 3; descriptor++)
        dup2(nowhere, descriptor);
    _exit(become(program, none));
}

static int with_both(char** entries, char** program) {
    char* environment[1024];
    size_t count = 0;
    for (char** entry = environ; *entry && count < 1000; entry++)
        environment[count++] = *entry;
    environment[count++] = entries[0];
    environment[count++] = entries[1];
    environment[count] = NULL;
    return become(program, environment);
}

static int drop(char** program) {
    if (geteuid() == getuid()) {
        fprintf(stderr, "way: has no more rights than its user\n");
        return 126;
    }
    if (setresuid(getuid(), getuid(), getuid()) != 0 || setresgid(getgid(), getgid(), getgid()) != 0)
        return fail("rights");
    return become(program, environ);
}

static int be(uid_t user) {
    return setgroups(0, NULL) == 0 && setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0 &&
           setsid() >= 0;
}

static int serve_jobs(uid_t user, const char* fifo) {
    if (mkfifo(fifo, 0622) != 0)
        return fail(fifo);
    FILE* const jobs = fopen(fifo, "r+");
    char line[4096];
    if (!jobs)
        return fail(fifo);
    while (fgets(line, sizeof line, jobs)) {
        if (fork() != 0)
            continue;
        prctl(PR_SET_PDEATHSIG, 0);
        char* shell[] = {"/bin/sh", "-c", line, NULL};
        _exit(be(user) ? become(shell, of_a_daemon) : fail("rights"));
    }
    return 0;
}

static struct sockaddr_un address_of(const char* path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return address;
}

static int serve_shells(uid_t user, const char* path) {
    char early[128];
    snprintf(early, sizeof early, "%s.early", path);  // it has its name once it can be asked
    const struct sockaddr_un address = address_of(early);
    const int door = socket(AF_UNIX, SOCK_STREAM, 0);
    if (door < 0 || bind(door, (const struct sockaddr*)&address, sizeof address) != 0 || listen(door, 5) != 0 ||
        rename(early, path) != 0)
        return fail(path);
    for (int guest; (guest = accept(door, NULL, NULL)) >= 0; close(guest)) {
        if (fork() != 0)
            continue;
        prctl(PR_SET_PDEATHSIG, 0);
        for (int descriptor = 0; descriptor < 3; descriptor++)
            dup2(guest, descriptor);
        close(guest);
        close(door);
        char* shell[] = {"-sh", NULL};
        if (be(user))
            execve("/bin/sh", shell, of_a_daemon);
        _exit(fail("shell"));
    }
    return 0;
}

static int ask(const char* path, const char* text) {
    const struct sockaddr_un address = address_of(path);
    const int line = socket(AF_UNIX, SOCK_STREAM, 0);
    char answer[4096];
    if (line < 0 || connect(line, (const struct sockaddr*)&address, sizeof address) != 0 ||
        write(line, text, strlen(text)) != (ssize_t)strlen(text) || shutdown(line, SHUT_WR) != 0)
        return fail(path);
    for (ssize_t got; (got = read(line, answer, sizeof answer)) > 0;)
        fwrite(answer, 1, (size_t)got, stdout);
    return 0;
}

int main(int count, char** words) {
    const char* const way = count > 2 ? words[1] : "";
    if (!strcmp(way, "exec"))
        return become(words + 2, none);
    if (!strcmp(way, "spawn"))
        return spawn(words + 2);
    if (!strcmp(way, "fork"))
        return in_child(words + 2);
    if (!strcmp(way, "daemon"))
        return in_daemon(words + 2);
    if (!strcmp(way, "drop"))
        return drop(words + 2);
    if (count > 4 && !strcmp(way, "twice"))
        return with_both(words + 2, words + 4);
    if (count == 4 && !strcmp(way, "ask"))
        return ask(words[2], words[3]);
    // Nobody has to look for a daemon where whoever started it has been killed.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    umask(0);
    signal(SIGCHLD, SIG_IGN);
    if (count == 4 && !strcmp(way, "jobs"))
        return serve_jobs((uid_t)atoi(words[2]), words[3]);
    if (count == 4 && !strcmp(way, "shells"))
        return serve_shells((uid_t)atoi(words[2]), words[3]);
    fprintf(stderr, "way: there is no way %s\n", way);
    return 64;
}
