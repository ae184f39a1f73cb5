// SPDX-License-Identifier: Apache-2.0
// A program that root has started and that gives its rights up: it tries on everything that it finds open in a folder
// whatever a descriptor may allow, and says what could be done.
//
//   guest_descriptors FOLDER MODE [USER]
//
// Modes: "here" (its rights are gone already), "drop" (it becomes USER first), "join" (it makes a CUDA context before),
// "fork" (a child of it tries), "send" (it hands everything to a process that has inherited nothing).
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace {

std::string folder;

std::string target_of(int file) {
    char text[512];
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    const ssize_t length = readlink(link.c_str(), text, sizeof text);
    return length > 0 ? std::string(text, static_cast<size_t>(length)) : std::string();
}

void say(bool done, const char* what, const std::string& on) {
    if (done)
        std::printf("%s %s\n", what, on.c_str());
}

bool lock(int file, int command, short type) {
    struct flock all {};
    all.l_type = type;
    all.l_whence = SEEK_SET;
    return fcntl(file, command, &all) == 0;
}

void try_file(int file, const std::string& name) {
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    say(fchmod(file, 0666) == 0, "chmod", name);
    say(fchown(file, getuid(), getgid()) == 0, "chown", name);
    say(open(link.c_str(), O_RDWR | O_NONBLOCK) >= 0, "reopen", name);
    say(open(link.c_str(), O_WRONLY | O_TRUNC | O_NONBLOCK) >= 0, "reopen-short", name);
    say(truncate(link.c_str(), 0) == 0, "truncate", name);
    say(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) != MAP_FAILED, "map", name);
    for (const int command : {F_SETLK, F_OFD_SETLK}) {
        say(lock(file, command, F_WRLCK), "write-lock", name);
        say(lock(file, command, F_RDLCK), "read-lock", name);
    }
    say(flock(file, LOCK_EX | LOCK_NB) == 0, "flock", name);
    say(fcntl(file, F_SETLEASE, F_WRLCK) == 0, "lease", name);
    say(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20) == 0, "punch", name);
    say(pwrite(file, "forged", 6, 0) == 6, "pwrite", name);
    say(write(file, "forged", 6) == 6, "write", name);
    say(ftruncate(file, 1) == 0, "lengthen", name);
    say(ftruncate(file, 0) == 0, "shorten", name);
}

void try_folder(int file) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const std::string name = entry.path().filename();
        say(openat(file, name.c_str(), O_RDWR | O_NONBLOCK) >= 0, "openat", name);
        say(unlinkat(file, name.c_str(), 0) == 0, "unlink", name);
        say(renameat(file, name.c_str(), file, (name + ".gone").c_str()) == 0, "rename", name);
        say(fchmodat(file, name.c_str(), 0666, 0) == 0, "chmod", name);
    }
}

void try_all() {
    unsigned found = 0;
    for (int file = 0; file < 1024; file++) {
        const std::string target = target_of(file);
        if (!target.starts_with(folder))
            continue;
        found++;
        if (target == folder)
            try_folder(file);
        else
            try_file(file, target.substr(folder.size() + 1));
    }
    std::printf("tried %u\n", found);
    std::fflush(stdout);
}

bool drop(const char* user) {
    const auto number = static_cast<uid_t>(std::atoi(user));
    return setgroups(0, nullptr) == 0 && setresgid(number, number, number) == 0 &&
           setresuid(number, number, number) == 0;
}

bool join() {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        return false;
    const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
    const auto retain = reinterpret_cast<int (*)(void**, int)>(dlsym(driver, "cuDevicePrimaryCtxRetain"));
    void* context = nullptr;
    return init && retain && init(0) == 0 && retain(&context, 0) == 0;
}

union Handed {
    cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
};

msghdr message_of(iovec& text, Handed& handed) {
    msghdr message{};
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    message.msg_control = handed.space;
    message.msg_controllen = sizeof handed.space;
    return message;
}

void send(int socket, int file) {
    Handed handed{};
    char byte = 'f';
    iovec text{&byte, 1};
    msghdr message = message_of(text, handed);
    handed.header.cmsg_level = SOL_SOCKET;
    handed.header.cmsg_type = SCM_RIGHTS;
    handed.header.cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(&handed.header), &file, sizeof file);
    sendmsg(socket, &message, 0);
}

bool receive(int socket) {
    Handed handed{};
    char byte = 0;
    iovec text{&byte, 1};
    msghdr message = message_of(text, handed);
    return recvmsg(socket, &message, 0) == 1;  // what comes along stays open
}

// Files are handed from the one that has them to one that has closed all that it began with.
void send_all() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
        return;
    const pid_t child = fork();
    if (child == 0) {
        for (int file = 3; file < 1024; file++)
            if (file != ends[1])
                close(file);
        while (receive(ends[1])) {
        }
        try_all();
        _exit(0);
    }
    close(ends[1]);
    for (int file = 0; file < 1024; file++)
        if (target_of(file).starts_with(folder))
            send(ends[0], file);
    close(ends[0]);
    waitpid(child, nullptr, 0);
}

}  // namespace

int main(int count, char** words) {
    if (count < 3)
        return 64;
    folder = words[1];
    const std::string mode = words[2];
    if (mode == "join" && !join())
        return 1;
    if (mode != "here" && (count < 4 || !drop(words[3])))
        return 1;
    if (mode == "send")
        return send_all(), 0;
    if (mode != "fork")
        return try_all(), 0;
    const pid_t child = fork();
    if (child == 0)
        try_all(), _exit(0);
    waitpid(child, nullptr, 0);
    return 0;
}
