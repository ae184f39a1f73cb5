#include "fake/driver/injection_mark.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "fake/books/books.h"

namespace cuslice::fake {

void InjectionMark::write() {
    if (noted_.exchange(true)) return;
    const int before = errno;
    const std::string path = books_folder() + "/injected/" + item_;
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file >= 0) ::close(file);
    errno = before;
}

}  // namespace cuslice::fake
