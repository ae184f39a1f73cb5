// SPDX-License-Identifier: Apache-2.0
// Programs that shed their environment, in whatever way: each is in the slice of its rule, which it shares with
// whatever else its user runs. Nothing limits a program without a rule.
#include <unistd.h>

#include "tests/catch.h"
#include "tests/preload/places.h"
#include "tests/preload/scene.h"
#include "tests/skip.h"
#include "tests/stub/ruled.h"

namespace cuslice::tests {
namespace {

constexpr uint64_t kPage = 2 * kMiB;

struct Way {
    const char* name;
    std::string text;     // see Ruled::shell()
    bool python = false;  // answers for itself, and there is one program
};

/// A daemon that was started earlier, as root and with nothing in its environment, is asked; and is ended when the
/// probes are.
std::string through_daemon(const std::string& kind, const std::string& place, const std::string& asking) {
    return "env -i {way} " + kind + " {user} " + place + " & until [ -e " + place + " ]; do sleep 0.01; done; " +
           asking + "; until [ -e {at}/over ]; do sleep 0.01; done; kill $!";
}

const Way kWays[] = {
    {"nothing is shed", "{alice} {probe}"},
    {"env -i", "{alice} env -i {probe}"},
    {"env -u LD_PRELOAD", "{alice} env LD_PRELOAD={library} env -u LD_PRELOAD {probe}"},
    {"unset", "{alice} sh -c 'unset LD_PRELOAD CUSLICE_LIMIT CUSLICE_SETTINGS CUSLICE_JOB; {probe}'"},
    {"exec -c of a shell", "{alice} bash -c 'exec -c {probe}'"},
    {"setpriv", "setpriv --reuid alice --regid alice --init-groups --reset-env {probe}"},
    {"setsid", "{alice} setsid --wait env -i {probe}"},
    {"nohup", "{alice} nohup env -i {probe} 2> /dev/null"},
    {"a daemon as atd", through_daemon("jobs", "{at}/jobs", "{alice} sh -c 'echo {probe} > {at}/jobs'")},
    {"a daemon as sshd", through_daemon("shells", "{at}/shells", "{alice} {way} ask {at}/shells '{probe}; exit'")},
    {"nested namespaces",
     "unshare --mount --pid --ipc --uts --net --fork --mount-proc "
     "unshare --mount --pid --ipc --fork --mount-proc {alice} {probe}"},
    {"chroot", "mkdir {at}/jail && mount --rbind / {at}/jail && chroot {at}/jail {alice} {probe}"},
    {"os.environ.clear()",
     "cd {at} && {alice} env {machine} {python} {clears} < questions > opened 2> errors; : > over", true},
    {"subprocess with env={}", "{alice} {python} -c 'import subprocess; subprocess.run([\"{probe}\"], env={})'"},
    {"execve", "{alice} {way} exec {probe}"},
    {"posix_spawn", "{alice} {way} spawn {probe}"},
    {"a static program in between", "{alice} {static} fork {probe}"},
    {"a login shell", "{alice} env -i HOME={at} bash -c 'exec -l sh -c {probe}'"},
    {"a daemon that forks twice", "{alice} {way} daemon {probe}"},
    {"a set-user-ID program in between",
     "cp {way} {at}/drop && chown root {at}/drop && chmod 4755 {at}/drop && {alice} {at}/drop drop {probe}"},
    {"HOME and XDG_CONFIG_HOME", "{alice} env HOME={at}/raised XDG_CONFIG_HOME={at}/raised {probe}"},
    {"LD_LIBRARY_PATH", "{alice} env LD_LIBRARY_PATH={fake} {probe}"},
    {"CUSLICE_SETTINGS",
     "{alice} env 'CUSLICE_SETTINGS=1;flag.0 limit * 1900MiB --limit;flag.0 headroom * 16MiB -' {probe}"},
    {"the loader as a program", "{alice} {probe} {loader}"},
};

/// A copy of the program that opens the driver, with root's rights; a shell would give them back.
const std::string kSetUserId =
    "cp {guest} {at}/rights && chown root {at}/rights && chmod 4755 {at}/rights && cd {at} &&"
    " {alice} env {machine} {at}/rights dlopen=libcuda.so.1 < questions > opened 2> errors; : > over";

/// A probe's answers, one for each line that it asks while it holds nothing: a CUresult and what comes behind it.
struct Asked {
    Words words;
    std::string errors;
    int code(size_t line) const { return words.size() > line ? std::stoi(words[line]) : -1; }
    uint64_t number(size_t line) const {
        const Words parts = words.size() > line ? split_words(words[line]) : Words{};
        return parts.size() > 1 ? std::stoull(parts[1]) : 0;
    }
};
enum Line { init, retain, current, total, before, too_much, rest, one_more, freeall, after };

/// Somebody of Alice's who holds a part of her slice.
struct Holder {
    explicit Holder(const Ruled& ruled) : guest(ruled.guest(), plain()) {
        use_device(guest);
        context = books_of(ruled.books(), guest.pid()).used;
        total = guest.number("total 0");
        REQUIRE(guest.code("alloc some " + bytes(320 * kMiB)) == kSuccess);
        free = guest.number("info");
        left = kGiB - 16 * kMiB - books_of(ruled.books(), guest.pid()).used - context;
    }
    /// Bytes that a program of its kind finds left once it has its context, in whole pages.
    uint64_t pages() const { return left / kPage * kPage; }
    void write_questions(const Ruled& ruled) const {
        ruled.write_questions("init\nretain 0\ncurrent 0\ntotal 0\ninfo\nalloc a " + bytes(pages() + kPage) +
                              "\nalloc b " + bytes(pages()) + "\nalloc c " + bytes(kPage) + "\nfreeall\ninfo\n");
    }
    /// That nobody else holds any of it now.
    void check_alone() {
        CHECK(guest.code("alloc rest " + bytes(free / kPage * kPage)) == kSuccess);
        CHECK(guest.code("free rest") == kSuccess);
        CHECK(guest.number("info") == free);
    }

    Guest guest;
    uint64_t context = 0, total = 0, free = 0, left = 0;  // left: of the slice, to the next one
};

void check_shares(const Holder& holder, const Asked& asked) {
    CAPTURE(asked.words, asked.errors);
    CHECK(asked.code(init) == kSuccess);
    CHECK(asked.number(total) == kGiB);
    CHECK(asked.number(before) == holder.left);
    CHECK(asked.code(too_much) == kOutOfMemory);
    CHECK(asked.code(rest) == kSuccess);
    CHECK(asked.code(one_more) == kOutOfMemory);
    CHECK(asked.code(freeall) == kSuccess);
    CHECK(asked.number(after) == holder.left);
}

void check_free(const Asked& asked) {
    CAPTURE(asked.words, asked.errors);
    CHECK(asked.code(init) == kSuccess);
    CHECK(asked.number(total) >= 1900 * kMiB);  // which a way may ask for
    CHECK(asked.code(too_much) == kSuccess);
    CHECK(asked.code(freeall) == kSuccess);
}

/// The answers of a way's programs: one after the other, in the same slice.
std::vector<Asked> answers(const Ruled& ruled, const Holder& holder, const Way& way, const Words& environment) {
    holder.write_questions(ruled);
    const Outcome outcome = run(ruled.shell(way.text), environment);
    CAPTURE(outcome.out, outcome.err);
    REQUIRE(outcome.exit_code == 0);
    const Ruled::Answers answers = ruled.take_answers();
    std::vector<Asked> all{{answers.opened, answers.errors}};
    if (!way.python)
        all.push_back({answers.linked, answers.errors});
    return all;
}

void check_way(const Way& way) {
    CAPTURE(way.name);
    for (const char* share : {"user", "cgroup"}) {
        CAPTURE(share);
        const Ruled ruled(share);
        if (!ruled.possible() || !ruled.has(way.text))
            return;
        Holder holder(ruled);
        CHECK(holder.total == kGiB);
        for (const Asked& asked : answers(ruled, holder, way, plain({"CUSLICE_LIMIT=1900MiB"})))
            check_shares(holder, asked);
        holder.check_alone();
        CHECK(holder.guest.finish() == 0);
    }
    const Ruled ruled("");
    if (!ruled.possible())
        return;
    Holder holder(ruled);
    CHECK(holder.total > kGiB);
    for (const Asked& asked : answers(ruled, holder, way, plain()))
        check_free(asked);
    CHECK(holder.guest.finish() == 0);
}

}  // namespace

TEST_CASE("on 20 ways to shed an environment a program stays in the slice that its rule shares", "[slow]") {
    const Way way = GENERATE(from_range(std::begin(kWays), std::end(kWays)));
    check_way(way);
}

TEST_CASE("through su a program stays in the slice that its rule shares") {
    const std::string su = GENERATE("su alice -c {probe}", "su -l alice -c {probe}", "su -s {probe} alice");
    const Ruled ruled("user");
    if (!ruled.possible())
        return;
    const Outcome tried = run(ruled.shell("su alice -c 'test $(id -u) = {user}'"), plain());
    if (tried.exit_code != 0)
        return skip("there is no su here, or it doesn't work in a namespace: " + tried.err);
    check_way({"su", su});
}

TEST_CASE("a job of at's stays in the slice that its rule shares") {
    const Ruled ruled("user");
    if (!ruled.possible())
        return;
    if (run(ruled.shell("command -v at && command -v atd"), plain()).exit_code != 0)
        return skip("there is no at here");
    // Its daemon's folders and leave to be asked are this namespace's own. at tells it of a job by a signal.
    check_way({"at",
               "set -e; mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /var/spool; mkdir /var/spool/cron;"
               " cd /var/spool/cron; install -d -m 1770 -o daemon -g daemon atjobs atspool;"
               " install -m 600 -o daemon -g daemon /dev/null atjobs/.SEQ; : > /etc/at.deny;"
               " for part in auth account session; do echo $part required pam_permit.so; done > /etc/pam.d/atd;"
               " env -i $(command -v atd) -f -l 1000 -b 1 & trap \"kill $!\" EXIT;"
               " until [ -s /run/atd.pid ]; do sleep 0.01; done;"
               " echo {probe} | {alice} env -i $(command -v at) -M now; until [ -e {at}/over ]; do sleep 0.01; done"});
}

TEST_CASE("where it can't be told whose slice a program has, it is granted nothing, and a line says so") {
    struct Place {
        const char* name;
        const char* share;
        std::string text;
        const char* why;
    };
    const Place place = GENERATE(
        Place{"a user namespace", "user", "{alice} unshare --user --map-root-user {probe}",
              "the owner of this process can't be told in a user namespace or without /proc"},
        Place{"nested user namespaces", "user",
              "{alice} unshare --user --map-root-user unshare --user --map-root-user --mount --pid --fork {probe}",
              "the owner of this process can't be told in a user namespace or without /proc"},
        Place{"a cgroup namespace", "cgroup", "unshare --cgroup {alice} {probe}",
              "this process's cgroup can't be told in a cgroup namespace"},
        Place{"a set-user-ID program", "user", kSetUserId,
              "this process's real user isn't its effective one (set-user-ID)"},
        Place{"a set-user-ID program", "cgroup", kSetUserId,
              "this process's real user isn't its effective one (set-user-ID)"});
    CAPTURE(place.name, place.share);
    for (const char* share : {place.share, ""}) {
        const Ruled ruled(share);
        if (!ruled.possible())
            return;
        Holder holder(ruled);
        holder.write_questions(ruled);
        const Outcome outcome = run(ruled.shell(place.text), plain());
        const Ruled::Answers answers = outcome.exit_code == 0 ? ruled.take_answers() : Ruled::Answers{};
        if (answers.opened.empty())
            return skip("this machine doesn't let tests do that: " + outcome.err);
        const Asked asked{answers.opened, answers.errors};
        CAPTURE(asked.words, asked.errors);
        if (*share == '\0') {
            check_free(asked);
        } else {
            CHECK(asked.code(init) > kSuccess);
            CHECK(asked.code(rest) > kSuccess);
            CHECK(asked.errors.find("rule mine shares one slice, and " + std::string(place.why)) != std::string::npos);
            holder.check_alone();
        }
    }
}

}  // namespace cuslice::tests
