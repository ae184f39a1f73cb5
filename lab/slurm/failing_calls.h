/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Stands between the plugin and the C library: included before the plugin's source, once all of its headers are. Each
   call asks first whether it is the one that fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* True, with errno, if this is the call that is to fail. */
bool call_fails(const char* name);

#define access(...) (call_fails("access") ? -1 : access(__VA_ARGS__))
#define close(file) (call_fails("close") ? (close(file), errno = EIO, -1) : close(file)) /* closed all the same */
#define dladdr(...) (call_fails("dladdr") ? 0 : dladdr(__VA_ARGS__))
#define dup2(...) (call_fails("dup2") ? -1 : dup2(__VA_ARGS__))
#define execve(...) (call_fails("execve") ? -1 : execve(__VA_ARGS__))
#define fork() (call_fails("fork") ? -1 : fork())
#define getrlimit(...) (call_fails("getrlimit") ? -1 : getrlimit(__VA_ARGS__))
#define kill(...) (call_fails("kill") ? -1 : kill(__VA_ARGS__))
#define open(...) (call_fails("open") ? -1 : open(__VA_ARGS__))
#define pipe2(...) (call_fails("pipe2") ? -1 : pipe2(__VA_ARGS__))
#define poll(...) (call_fails("poll") ? -1 : poll(__VA_ARGS__))
#define read(...) (call_fails("read") ? -1 : read(__VA_ARGS__))
#define setgid(...) (call_fails("setgid") ? -1 : setgid(__VA_ARGS__))
#define setgroups(...) (call_fails("setgroups") ? -1 : setgroups(__VA_ARGS__))
#define setuid(...) (call_fails("setuid") ? -1 : setuid(__VA_ARGS__))
#define syscall(...) (call_fails("syscall") ? -1 : syscall(__VA_ARGS__))
#define waitpid(...) (call_fails("waitpid") ? (errno = EINTR, -1) : waitpid(__VA_ARGS__)) /* by a signal alone */
