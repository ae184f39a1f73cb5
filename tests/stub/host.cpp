// SPDX-License-Identifier: Apache-2.0
#include "tests/stub/host.h"
#include "tests/allowed.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fake/books/books.h"
#include "tests/catch.h"
#include "tests/preload/places.h"
#include "tests/skip.h"
#include "tests/stub/copy_readable.h"

namespace cuslice::tests {
namespace {

namespace fs = std::filesystem;

constexpr char kPath[] = "/opt/cuslice/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

std::string name_of(unsigned user) {
    switch (user) {
        case kAlice:
            return "alice";
        case kBob:
            return "bob";
        case kCarol:
            return "carol";
        default:
            return "root";
    }
}

std::string home_of(unsigned user) { return user == kRoot ? "/root" : "/home/" + name_of(user); }

std::string page() { return read_text(CUSLICE_TEST_PAGE); }

}  // namespace

const Words Host::kOpens{"/opt/lab/guest", "dlopen=libcuda.so.1"};
const Words Host::kLinked{"/opt/lab/guest_linked", "linked"};
const Words Host::kPython{"/usr/bin/python3", "/opt/lab/tenant.py"};

Host::Host() {
    for (const char* folder : {"/etc", "/etc/cuslice/rules.d", "/usr/lib", "/opt/cuslice/bin", "/opt/cuslice/lib",
                               "/opt/lab", "/opt/gpu", "/proc", "/dev", "/run", "/tmp", "/root", "/home", "/books"})
        fs::create_directories(at(folder));
    fs::permissions(root_.path(), fs::perms(0755));
    fs::permissions(at("/books"), fs::perms(0777));
    make_users();
    make_programs();
}

void Host::make_users() const {
    std::string users = "root:x:0:0::/root:/bin/sh\n", groups = "root:x:0:\n", shadow = "root:*:19000:0:99999:7:::\n";
    for (const unsigned user : {kAlice, kBob, kCarol}) {
        const std::string name = name_of(user), number = std::to_string(user);
        users += name + ":x:" + number + ":" + number + "::" + home_of(user) + ":/bin/sh\n";
        groups += name + ":x:" + number + ":\n";
        shadow += name + ":*:19000:0:99999:7:::\n";
        fs::create_directory(at(home_of(user)));
    }
    root_.write("etc/passwd", users);
    root_.write("etc/group", groups);
    root_.write("etc/shadow", shadow, 0640);
    for (const char* name : {"pam.d", "security", "login.defs", "alternatives", "nsswitch.conf", "ld.so.conf.d"})
        if (fs::exists("/etc/" + std::string(name)))
            copy_readable("/etc/" + std::string(name), at("/etc/") + name);
}

// The installation has the files that this build has made.
void Host::make_programs() const {
    const auto all = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
    fs::copy_file(kLaunch, at("/opt/cuslice/bin/cuslice"));
    fs::copy(fs::path(kPreloaded).parent_path(), at("/opt/cuslice/lib/cuslice"), all);
    fs::copy(kFakeFolder, at("/opt/gpu"), all | fs::copy_options::overwrite_existing);
    for (const char* name : {"guest", "guest_linked"})
        fs::copy_file(kGuests + "/" + name, at("/opt/lab/") + name);
    fs::copy_file(CUSLICE_TEST_STATIC_WAY, at("/opt/lab/static"));
    fs::copy_file(CUSLICE_TEST_TENANT, at("/opt/lab/tenant.py"));
    root_.write("opt/lab/on", "#!/bin/sh\nexport CUSLICE_FAKE=1xt4 CUSLICE_FAKE_DIR=/books\nexec \"$@\"\n", 0755);
    root_.write("etc/ld.so.conf", "/opt/gpu\ninclude /etc/ld.so.conf.d/*.conf\n");
}

// This machine's programs and libraries. /usr/lib itself is a folder of its own, as the stub comes there.
std::string Host::mounts() const {
    return "set -e; cd " + root_.path() +
           R"(
show() { mkdir -p ".$1" && mount --rbind "$1" ".$1"; }
for one in /bin /sbin /lib /lib64; do
    if [ -h $one ]; then cp -P $one .; elif [ -d $one ]; then show $one; fi
done
for one in /usr/* /usr/lib/*; do
    if [ $one = /usr/lib ]; then continue; fi
    if [ -h "$one" ]; then cp -P "$one" ".$one"; elif [ -d "$one" ]; then show "$one"; fi
done
mount --rbind /proc proc
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=0755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
for user in alice bob carol; do
    chown $(sed -n "s/^$user:x:\([0-9]*\):.*/\1/p" etc/passwd) home/$user
done
chroot . /sbin/ldconfig
exec chroot . /bin/cat
)";
}

bool Host::possible() {
    if (!kSanitizer.empty())
        return skip("the stub is built without the sanitizer, whose runtime it comes before"), false;
    if (!can_be_other_users() || !can_unshare(CLONE_NEWNS))
        return false;
    keeper_ = std::make_unique<Guest>(Words{"/usr/bin/unshare", "--mount", "/bin/sh", "-c", mounts()}, plain());
    if (keeper_->ask("here") != "here") {
        keeper_->finish();
        return skip("no machine of its own can be made here: " + keeper_->err()), false;
    }
    // The accounting is its maker's, where a real GPU is everybody's.
    const auto first = start(kRoot, kOpens);
    if (first->code("init") != kSuccess || first->code("retain 0") != kSuccess)
        return skip("there is no fake GPU here"), false;
    for (const auto& file : fs::directory_iterator(at("/books")))
        fs::permissions(file, fs::perms(0666));
    const Outcome entered = shell(kBob, "test $(id -u) = " + std::to_string(kBob) + " -a -x /opt/lab/guest");
    if (entered.exit_code == 0)
        return true;
    return skip("another user can't be in a namespace here: " + entered.err), false;
}

bool Host::has_python() const {
    const Outcome outcome = shell(kBob, "exec /usr/bin/python3 -c 'import ctypes, fcntl'");
    if (outcome.exit_code == 0)
        return true;
    return skip("there is no Python for every user: " + outcome.err), false;
}

Words Host::as(unsigned user, const Words& program) const {
    const std::string of = "/proc/" + std::to_string(keeper_->child()), number = std::to_string(user);
    Words words{"/usr/bin/nsenter", "--mount=" + of + "/ns/mnt", "--root=" + of + "/root", "--wd=" + of + "/root",
                "--"};
    if (user != kRoot)
        words = joined(words, {"/usr/bin/setpriv", "--reuid", number, "--regid", number, "--clear-groups", "--"});
    return joined(words, program);
}

Words Host::machine(unsigned user) const {
    return {"PATH=" + std::string(kPath), "HOME=" + home_of(user), "CUSLICE_FAKE=1xt4", "CUSLICE_FAKE_DIR=/books"};
}

Outcome Host::shell(unsigned user, const std::string& text) const {
    return run(as(user, {"/bin/sh", "-c", text}), machine(user));
}

std::string Host::done(unsigned user, const std::string& text) const {
    const Outcome outcome = shell(user, text);
    INFO(text << ": " << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return outcome.out;
}

std::unique_ptr<Guest> Host::start(unsigned user, const Words& program, const Words& more) const {
    Words environment = machine(user);
    for (const std::string& line : more) {
        const std::string name = line.substr(0, line.find('=') + 1);
        std::erase_if(environment, [&](const std::string& other) { return other.starts_with(name); });
        environment.push_back(line);
    }
    return std::make_unique<Guest>(as(user, program), environment);
}

std::map<std::string, std::string> Host::files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(root_.path())) {
        const std::string path = entry.path().string().substr(root_.path().size());
        if (path.starts_with("/books/"))
            continue;
        if (entry.is_symlink())
            all[path] = "-> " + fs::read_symlink(entry).string();
        else
            all[path] = entry.is_regular_file() ? read_text(entry.path()) : "";
    }
    return all;
}

uint64_t Host::held_by(unsigned user) const {
    uint64_t held = 0;
    for (const auto& file : fs::directory_iterator(at("/books"))) {
        fake::Books books;
        std::string error;
        if (!books.open_existing(file.path().string(), error))
            continue;  // a lock file
        for (const fake::Holder& holder : books.holders()) {
            struct stat info {};
            const std::string process = "/proc/" + std::to_string(holder.pid);
            if (stat(process.c_str(), &info) == 0 && info.st_uid == user)
                held += holder.used;
        }
    }
    return held;
}

std::string command_of_page(const std::string& begin) {
    for (const std::string& line : split_lines(page()))
        if (line.starts_with(begin))
            return line.substr(0, line.find(" #"));
    FAIL("docs/administrators.md has no line that begins with " + begin);
    return {};
}

std::string block_of_page(const std::string& language, const std::string& begin) {
    const std::string text = page(), fence = "```" + language + "\n" + begin;
    const size_t at = text.find(fence);
    REQUIRE(at != text.npos);
    const size_t first = text.find('\n', at) + 1;
    return text.substr(first, text.find("```", first) - first);
}

std::string code_of_page(const std::string& begin) {
    const std::string text = page();
    const size_t at = text.find("`" + begin);
    REQUIRE(at != text.npos);
    return text.substr(at + 1, text.find('`', at + 1) - at - 1);
}

}  // namespace cuslice::tests
