// SPDX-License-Identifier: Apache-2.0
// `cuslice top` in a terminal, on the tests' own driver of two GPUs: frames, keys, sizes, and that the terminal is as
// it was after every way out.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <regex>

#include "cli/text/json.h"
#include "policy/base/kernel_clock.h"
#include "policy/stats/file.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/made_up_job.h"
#include "tests/cli/terminal.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {
namespace {

const std::string kEnter = "\x1b[?1049h", kLeave = "\x1b[?25h\x1b[?1049l";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

Words environment(const Folder& folder, const Words& more = {}) {
    return with(plain_environment("/nowhere"), with({"CUSLICE_DIR=" + folder.path()}, more));
}
const Words kColours = {"TERM=xterm-256color", "LANG=C.UTF-8"};

// A view that draws again when something happens, and not by itself.
Terminal view(const Folder& folder, unsigned rows = 24, unsigned columns = 80, const Words& more = kColours) {
    return Terminal({kLauncher, "top", "--fake=2xstub", "--interval", "1h"}, environment(folder, more), rows, columns);
}

Outcome once(const Folder& folder, const Words& options, const Words& more = {}) {
    return run(with({kLauncher, "top", "--fake=2xstub"}, options), environment(folder, more));
}

// How long a job has been idle goes on between two commands.
std::string without_idle(const std::string& text) {
    return std::regex_replace(text, std::regex(" +[0-9]+ s(?=  |\n)"), " N s");
}

bool same(const termios& a, const termios& b) {
    return a.c_iflag == b.c_iflag && a.c_oflag == b.c_oflag && a.c_cflag == b.c_cflag && a.c_lflag == b.c_lflag &&
           std::equal(std::begin(a.c_cc), std::end(a.c_cc), std::begin(b.c_cc));
}

void check_restored(const Terminal& terminal) {
    CHECK(terminal.printed().ends_with(kLeave));
    CHECK(same(terminal.modes(), terminal.modes_before()));
}

}  // namespace

TEST_CASE("top draws frames in a terminal, and q gives it back as it was") {
    const Folder folder;
    Terminal terminal = view(folder);
    CHECK(terminal.shows(kEnter));
    CHECK(terminal.shows("cuslice top: 2 GPUs, 0 jobs"));
    CHECK(terminal.shows("GPU 0  Stub \"0\""));
    CHECK(terminal.shows("No job or group holds or reserves anything here."));
    CHECK((terminal.modes().c_lflag & (ICANON | ECHO)) == 0);
    CHECK((terminal.modes().c_lflag & ISIG) != 0);
    terminal.type("q");
    const int status = terminal.status();
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    check_restored(terminal);
}

TEST_CASE("top follows the size of its terminal") {
    const Folder folder;
    Terminal terminal = view(folder, 24, 100);
    CHECK(terminal.shows("8192 MiB, use unknown"));
    terminal.resize(24, 50);
    // Without the program's name, and without the start of a UUID.
    CHECK(terminal.shows("\x1b[1;1H\x1b[1m2 GPUs, 0 jobs"));
    terminal.resize(5, 50);
    CHECK(terminal.shows("\x1b[5;1H\x1b[90mq quits"));
    CHECK(terminal.shows(" more"));
    terminal.type("\x1b[B");
    CHECK(terminal.shows("1 above"));
    terminal.type("\x1b[6~\x1b[6~");
    CHECK(terminal.shows("\x1b[4;1H\x1b[90mNo job or group"));
    terminal.type("q");
    CHECK(terminal.status() == 0);
    check_restored(terminal);
}

TEST_CASE("top gives the terminal back when a signal ends it, and ends by that signal") {
    const int signal = GENERATE(SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGSEGV, SIGABRT);
    CAPTURE(signal);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    if (signal == SIGSEGV || signal == SIGABRT)
        return;  // the sanitizer's own
#endif
    const Folder folder;
    Terminal terminal = view(folder);
    CHECK(terminal.shows("2 GPUs"));
    ::kill(terminal.pid(), signal);
    const int status = terminal.status();
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == signal);
    check_restored(terminal);
}

TEST_CASE("top ends by Ctrl-C, and by the end of its terminal") {
    const Folder folder;
    Terminal terminal = view(folder);
    CHECK(terminal.shows("2 GPUs"));
    SECTION("Ctrl-C") {
        terminal.type("\x03");
        const int status = terminal.status();
        CHECK(WIFSIGNALED(status));
        CHECK(WTERMSIG(status) == SIGINT);
        check_restored(terminal);
    }
    SECTION("nobody looks at it any more") {
        terminal.close();
        CHECK(terminal.status() != -1);
    }
}

TEST_CASE("top stops on Ctrl-Z with the terminal as it was, waits in the background, and goes on in the foreground") {
    const Folder folder;
    Terminal terminal = view(folder);
    CHECK(terminal.shows("2 GPUs"));
    terminal.type("\x1a");
    int status = terminal.status();
    REQUIRE(WIFSTOPPED(status));
    CHECK(WSTOPSIG(status) == SIGTSTP);
    check_restored(terminal);
    terminal.background();
    status = terminal.status();
    REQUIRE(WIFSTOPPED(status));
    CHECK(WSTOPSIG(status) == SIGTTOU);
    check_restored(terminal);
    SECTION("it goes on") {
        terminal.foreground();
        CHECK(terminal.shows(kEnter));
        CHECK(terminal.shows("2 GPUs"));
        CHECK((terminal.modes().c_lflag & (ICANON | ECHO)) == 0);
        terminal.type("q");
        CHECK(terminal.status() == 0);
        check_restored(terminal);
    }
    SECTION("it is ended where it is") {
        ::kill(terminal.pid(), SIGTERM);
        terminal.background();
        status = terminal.status();
        CHECK(WIFSIGNALED(status));
        CHECK(WTERMSIG(status) == SIGTERM);
        check_restored(terminal);
    }
}

TEST_CASE("top draws again after a SIGSTOP that nobody sees come") {
    const Folder folder;
    Terminal terminal = view(folder);
    CHECK(terminal.shows("2 GPUs"));
    ::kill(terminal.pid(), SIGSTOP);
    REQUIRE(WIFSTOPPED(terminal.status()));
    terminal.foreground();
    CHECK(terminal.shows(kEnter));
    CHECK(terminal.shows("2 GPUs"));
    terminal.type("q");
    CHECK(terminal.status() == 0);
    check_restored(terminal);
}

TEST_CASE("top shows a job that begins, and a name in it does nothing to the terminal") {
    const CalledSo hostile("\x1b]0;owned\x07x");
    const Folder folder;
    Terminal terminal({kLauncher, "top", "--fake=2xstub", "--interval=100ms"}, environment(folder, kColours), 24, 100);
    CHECK(terminal.shows("2 GPUs, 0 jobs"));
    const Job job(folder.path(), "\x1b]0;owned\x07x");
    CHECK(terminal.shows("2 GPUs, 1 job"));
    CHECK(terminal.shows("JOBS AND GROUPS"));
    CHECK(terminal.shows("PEAK"));  // of a view that has been looking for a while
    CHECK(terminal.shows("\\x1b]0;owned\\x07x"));
    CHECK(terminal.shows("256"));
    CHECK_FALSE(contains(terminal.printed(), "\x1b]"));
    CHECK_FALSE(contains(terminal.printed(), "\x07"));
    terminal.type("q");
    CHECK(terminal.status() == 0);
}

TEST_CASE("top: keys open the help, sort, filter and fold, and Escape takes the filter back") {
    const Folder folder;
    const Job job(folder.path(), "a.out");
    Terminal terminal = view(folder, 24, 100);
    CHECK(terminal.shows("q quits  ? help"));
    terminal.type("?");
    CHECK(terminal.shows("cuslice top: keys"));
    CHECK(terminal.shows("any key goes back"));
    terminal.type("x");
    CHECK(terminal.shows("JOBS AND GROUPS"));
    terminal.type("s");
    CHECK(terminal.shows("by used"));
    terminal.type("/no such");
    CHECK(terminal.shows("No job or group has this text in it."));
    CHECK(terminal.shows("only what has: no such"));
    terminal.type("\x7f\n");
    CHECK(terminal.shows("only \"no suc\""));
    terminal.type("\x1b");
    CHECK(terminal.shows("JOBS AND GROUPS"));
    // A key of the list is a letter while a text is typed, and an arrow is none.
    terminal.type("/q\x1b[Aq");
    CHECK(terminal.shows("only what has: qq"));
    terminal.type("\x1b");
    CHECK(terminal.shows("q quits"));
    terminal.type("q");
    CHECK(terminal.status() == 0);
    check_restored(terminal);
}

TEST_CASE("top: l gives a job of one's own another limit, and says what became of it") {
    const Folder folder;
    Terminal none = view(folder, 24, 120);
    CHECK(none.shows("q quits"));
    none.type("l");
    CHECK(none.shows("There is no job or group of yours here"));
    none.type("q");
    CHECK(none.status() == 0);

    const Job job(folder.path(), "a.out");
    Terminal terminal = view(folder, 24, 120);
    CHECK(terminal.shows("2 GPUs, 1 job"));
    CHECK(terminal.shows("q quits"));
    terminal.type("l");
    CHECK(terminal.shows("limit of job "));
    CHECK(terminal.shows(" on GPU 0: "));
    terminal.type("2GiB\n");
    CHECK(terminal.shows(std::string(kUuid) + ": job 1-made-up: 2048.0 MiB"));
    CHECK(job.membership.limit() == 2 * kGiB);
    terminal.type("l");
    CHECK(terminal.shows("limit of job "));
    terminal.type("much\n");
    CHECK(terminal.shows("=much: not a size"));
    CHECK(job.membership.limit() == 2 * kGiB);
    terminal.type("l");
    CHECK(terminal.shows("limit of job "));
    terminal.type("3GiB\x1b");
    CHECK(terminal.shows("q quits"));
    CHECK(job.membership.limit() == 2 * kGiB);
    terminal.type("q");
    CHECK(terminal.status() == 0);
    check_restored(terminal);
}

TEST_CASE("top: l changes a limit in the ledgers that top shows, also where a file names their folder") {
    const Folder folder, elsewhere;
    const std::string file = elsewhere.path() + "/own.toml";
    std::ofstream(file) << "dir = \"" << folder.path() << "\"\n";
    const Job job(folder.path(), "a.out");
    Terminal terminal({kLauncher, "top", "--fake=2xstub", "--interval", "1h", "--config", file},
                      with(plain_environment("/nowhere"), kColours), 24, 120);
    CHECK(terminal.shows("2 GPUs, 1 job"));
    CHECK(terminal.shows("q quits"));
    terminal.type("l");
    CHECK(terminal.shows("limit of job "));
    terminal.type("2GiB\n");
    CHECK(terminal.shows("1-made-up"));
    CHECK(job.membership.limit() == 2 * kGiB);
    terminal.type("q");
    CHECK(terminal.status() == 0);
}

TEST_CASE("top has colours where the terminal has them and they are wanted, and blocks where it has UTF-8") {
    const Folder folder;
    const auto drawn = [&](const Words& more) {
        Terminal terminal = view(folder, 24, 80, more);
        CHECK(terminal.shows("2 GPUs"));
        CHECK(terminal.shows("q quits"));
        terminal.type("q");
        CHECK(terminal.status() == 0);
        return terminal.printed();
    };
    const Job job(folder.path(), "python");
    const std::string colour = "\x1b[32m";
    CHECK(contains(drawn(kColours), colour + "█"));
    CHECK_FALSE(contains(drawn({"TERM=xterm-256color", "LANG=C.UTF-8", "NO_COLOR=1"}), colour));
    CHECK(contains(drawn({"TERM=xterm-256color", "LANG=C.UTF-8", "NO_COLOR="}), colour));
    CHECK_FALSE(contains(drawn({"TERM=vt100", "LANG=C.UTF-8"}), colour));
    const std::string ascii = drawn({"TERM=vt100", "LANG=C.UTF-8", "LC_ALL=C"});
    CHECK(std::all_of(ascii.begin(), ascii.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
    CHECK(contains(ascii, "###"));
}

TEST_CASE("top prints one frame without escapes where it is asked to, or where it has no terminal") {
    const Folder folder;
    const Job job(folder.path(), "python");
    const Outcome piped = once(folder, {}, kColours), asked = once(folder, {"--once"}, kColours);
    CHECK(piped.exit_code == 0);
    CHECK(piped.err.empty());
    CHECK(without_idle(piped.out) == without_idle(asked.out));
    CHECK(piped.out.starts_with("cuslice top: 2 GPUs, 1 job\nGPU 0  Stub \"0\" "));
    CHECK(contains(piped.out, " test_cli_top"));
    CHECK_FALSE(contains(piped.out, "\x1b"));
    // The same in a terminal, as wide as that is.
    for (const Words& words :
         {Words{kLauncher, "top", "--fake=2xstub", "--once"}, Words{kLauncher, "top", "--fake=2xstub"}}) {
        const bool dumb = words.size() == 3;
        const Words plain = dumb ? Words{"TERM=dumb"} : Words{"TERM=xterm", "NO_COLOR=1"};
        Terminal terminal(words, environment(folder, with(plain, {"LANG=C.UTF-8"})), 24, 60);
        CHECK(terminal.status() == 0);
        CHECK(contains(terminal.printed(), "cuslice top: 2 GPUs, 1 job"));
        CHECK_FALSE(contains(terminal.printed(), "\x1b"));
        size_t width = 0;
        for (const char c : terminal.printed()) {
            width = c == '\n' ? 0 : width + (c != '\r' && (static_cast<unsigned char>(c) & 0xc0) != 0x80);
            CHECK(width <= 60);
        }
    }
    Terminal coloured({kLauncher, "top", "--fake=2xstub", "--once"}, environment(folder, kColours), 24, 60);
    CHECK(coloured.status() == 0);
    CHECK(contains(coloured.printed(), "\x1b[1mGPU 0  Stub \"0\"\x1b[0m"));
    CHECK_FALSE(contains(coloured.printed(), kEnter));
}

TEST_CASE("top --json prints one document, with what a process of ours says of its caches") {
    const Folder folder;
    const Job job(folder.path(), "python");
    stats::File* const file = stats::make_own(folder.path().c_str(), nullptr);
    REQUIRE(file != nullptr);
    stats::Gpu& gpu = file->gpus[0];
    std::strcpy(gpu.uuid, kUuid);
    gpu.mode = 1, gpu.contexts = 1;
    gpu.statistics.allocated.current = 64 * kMiB, gpu.statistics.reserved.current = 128 * kMiB;
    gpu.sequence = 2;
    const Outcome outcome = once(folder, {"--json", "--once"});
    CHECK(outcome.exit_code == 0);
    const cli::Json json = cli::Json::parse(outcome.out);
    CHECK(json["version"] == 1);
    REQUIRE(json["gpus"].size() == 2);
    CHECK(json["gpus"][0]["uuid"] == kUuid);
    CHECK(json["gpus"][0]["total"] == 8 * kGiB);
    CHECK(json["gpus"][0]["reserved_beyond_use"] == kGiB - 256 * kMiB);
    REQUIRE(json["processes"].size() == 1);
    CHECK(json["processes"][0]["pid"] == ::getpid());
    CHECK(json["processes"][0]["used"] == 256 * kMiB);
    REQUIRE(json["caches"].size() == 1);
    CHECK(json["caches"][0]["pid"] == ::getpid());
    CHECK(json["caches"][0]["allocator"] == "growth");
    CHECK(json["caches"][0]["reserved"]["current"] == 128 * kMiB);
    CHECK(contains(once(folder, {}).out, "CACHES"));
}

TEST_CASE("top without a GPU shows what the ledgers say, and exits 69") {
    const Folder folder;
    const Job job(folder.path(), "python");
    const Outcome text = once(folder, {}, {"STUB_NO_DEVICE=1"});
    CHECK(text.exit_code == 69);
    CHECK(contains(text.out, "No GPU can be listed: "));
    CHECK(contains(text.out, " test_cli_top"));
    CHECK(text.err.empty());  // all of it is in the frame
    const Outcome json = once(folder, {"--json"}, {"STUB_NO_DEVICE=1"});
    CHECK(json.exit_code == 69);
    CHECK(contains(json.err, "cuslice: no GPU can be listed: "));
    CHECK(cli::Json::parse(json.out)["gpus"].empty());
    CHECK(cli::Json::parse(json.out)["processes"].size() == 1);
}

TEST_CASE("top refuses an interval that is no time, or too short for an eye") {
    const Folder folder;
    for (const char* bad : {"5", "no", "", "99ms", "-1s", "1d", "25h", "999999999h"}) {
        const Outcome outcome = once(folder, {"--interval", bad});
        CAPTURE(bad);
        CHECK(outcome.exit_code == 64);
        const std::string seconds = std::string(bad) == "5" ? "; did you mean 5s" : "";
        CHECK(outcome.err == "cuslice: --interval " + std::string(bad) +
                                 ": a time from 100ms to 24h is needed: 500ms, 2s, 1m" + seconds + "\n");
    }
    CHECK(once(folder, {"--interval"}).err == "cuslice: --interval: a value is needed after it: --interval TIME\n");
    CHECK(once(folder, {"--interval=", "--once"}).exit_code == 64);
    CHECK(once(folder, {"--interval", "2s", "--once"}).exit_code == 0);
    CHECK(once(folder, {"--once=x"}).err == "cuslice: --once: takes no value\n");
    CHECK(once(folder, {"--limit=1GiB"}).err ==
          "cuslice: --limit: 1GiB: not an option of cuslice top; cuslice top --help lists what it takes\n");
}

}  // namespace cuslice::tests
