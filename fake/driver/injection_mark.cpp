// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/injection_mark.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>

#include "fake/books/books.h"

namespace cuslice::fake {

// A driver has no such note, so that no thread is to end in here.
void InjectionMark::write() {
    if (noted_.exchange(true))
        return;
    const int before = errno;
    int cancelled_as = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelled_as);
    const std::string path = books_folder() + "/injected/" + item_;
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file >= 0)
        ::close(file);
    pthread_setcancelstate(cancelled_as, nullptr);
    errno = before;
}

}  // namespace cuslice::fake
