// SPDX-License-Identifier: Apache-2.0
#pragma once
// A second process of a test.

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>

namespace fake_test {

/// A process at the other end of a socket, over which descriptors can be sent too. The end of this one ends it.
class Peer {
  public:
    explicit Peer(const std::function<void(const Peer&)>& body) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
            return;
        pid_ = fork();
        socket_ = ends[pid_ == 0 ? 1 : 0];
        close(ends[pid_ == 0 ? 0 : 1]);
        if (pid_ != 0)
            return;
        body(*this);
        exit(0);
    }
    Peer(const Peer&) = delete;

    template <typename T>
    void send(const T& value, int file = -1) const {
        iovec data{const_cast<T*>(&value), sizeof value};
        alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
        msghdr message{};
        message.msg_iov = &data;
        message.msg_iovlen = 1;
        if (file >= 0) {
            message.msg_control = room;
            message.msg_controllen = sizeof room;
            cmsghdr* header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(sizeof file);
            std::memcpy(CMSG_DATA(header), &file, sizeof file);
        }
        static_cast<void>(sendmsg(socket_, &message, MSG_NOSIGNAL));
    }
    /// The value; if the other end is gone, zeros. A descriptor that came along is put in `file`.
    template <typename T>
    T receive(int* file = nullptr) const {
        T value{};
        iovec data{&value, sizeof value};
        alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
        msghdr message{};
        message.msg_iov = &data;
        message.msg_iovlen = 1;
        message.msg_control = room;
        message.msg_controllen = sizeof room;
        if (recvmsg(socket_, &message, 0) <= 0)
            return {};
        const cmsghdr* header = CMSG_FIRSTHDR(&message);
        if (file != nullptr && header != nullptr)
            std::memcpy(file, CMSG_DATA(header), sizeof *file);
        return value;
    }
    void wait() const { waitpid(pid_, nullptr, 0); }
    void kill() const {
        ::kill(pid_, SIGKILL);
        wait();
    }

  private:
    pid_t pid_ = -1;
    int socket_ = -1;
};

}  // namespace fake_test
