// SPDX-License-Identifier: Apache-2.0
// A user who wants the stub to pass a program over: by what stands in the environment, by what is preloaded, and by
// libraries that say that they were cuslice's. The programs are one that opens the driver and one that is linked to it.
#include <unistd.h>

#include <filesystem>

#include "tests/catch.h"
#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/skip.h"
#include "tests/stub/system.h"

namespace cuslice::tests {
namespace {

namespace fs = std::filesystem;

std::string loader() {
    for (const char* path : {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"})
        if (fs::exists(path))
            return path;
    return "";
}

class Forging : public System {
  public:
    Forging() {
        write("questions", "init\ntotal 0\n");
        // The C library under another name, found by its own.
        fs::create_symlink(libc(), at("other-name.so"));
    }

    /// A shell's text in which {opens} is the program that opens the driver, {linked} the one that is linked to it.
    Outcome run_text(const std::string& text) const {
        return run(command({"/bin/sh", "-c", filled(text)}),
                   raw("1xlaptop-2g", books_.path(), {"CUSLICE_LIMIT=1024MiB"}));
    }
    std::string filled(std::string text) const {
        const std::pair<std::string, std::string> words[] = {
            {"{opens}", kGuests + "/guest dlopen=libcuda.so.1 < " + at("questions")},
            {"{opens by path}", kGuests + "/guest dlopen=" + kFakeDriver + " < " + at("questions")},
            {"{linked}", std::string(CUSLICE_TEST_LINKED) + "lazy"},
            {"{way}", CUSLICE_TEST_WAY},
            {"{loader}", loader()},
            {"{forged}", CUSLICE_TEST_FORGED},
            {"{library}", library()},
            {"{libraries}", fs::path(kPreloaded).parent_path().string()},
            {"{libc}", libc()},
            {"{at}", at("")}};
        for (const auto& [word, value] : words)
            for (size_t place; (place = text.find(word)) != text.npos;)
                text.replace(place, word.size(), value);
        return text;
    }

  private:
    static std::string libc() {
        for (const std::string& word : split_words(run({"/usr/bin/ldd", "/bin/true"}, plain()).out))
            if (word.starts_with("/") && word.ends_with("/libc.so.6"))
                return word;
        return "";
    }

    Folder books_;
};

bool has_line(const Outcome& outcome, const std::string& line) {
    return ("\n" + outcome.out).find("\n" + line + "\n") != std::string::npos;
}

// In its slice of 1 GiB, whichever of the two programs it was.
bool is_limited(const Outcome& outcome) {
    return outcome.exit_code == 0 &&
           (has_line(outcome, "0 " + std::to_string(kGiB)) || has_line(outcome, "main 0 1024"));
}

// Entries of LD_PRELOAD, of which each is to be put into a shell's text.
const char* const kPreloads[] = {"libc.so.6",
                                 "{libc}",
                                 "{at}other-name.so",
                                 "libm.so.6:libc.so.6",
                                 "'libc.so.6 libm.so.6'",
                                 "'/$LIB/libc.so.6'",
                                 "'/$LIB/libc.so.6:{at}other-name.so:libc.so.6'",
                                 "{forged}between.so",
                                 "{forged}between.so:libc.so.6",
                                 "libc.so.6:{forged}between.so",
                                 "libcuda.so.1",
                                 "{libraries}/libcuda.so",
                                 "{libraries}/libnvidia-ml.so.1",
                                 "{libraries}/libcuda.so:libc.so.6",
                                 "{library}:libc.so.6",
                                 "{forged}marker.so",
                                 "{forged}marker.so:libc.so.6",
                                 "{forged}entrance.so",
                                 "{forged}start.so"};

}  // namespace

TEST_CASE("whatever is preloaded, a program is in its slice") {
    const std::string preload = GENERATE(from_range(std::begin(kPreloads), std::end(kPreloads)));
    const std::string program = GENERATE("{opens}", "{opens by path}", "{linked}");
    CAPTURE(preload, program);
    const Forging system;
    if (!system.possible())
        return;
    const Outcome outcome = system.run_text("LD_PRELOAD=" + preload + " exec " + program);
    CAPTURE(outcome.out, outcome.err);
    CHECK(is_limited(outcome));
}

TEST_CASE("a library that has the driver's name is none, whatever it says") {
    const Forging system;
    if (!system.possible())
        return;
    const Outcome outcome = system.run_text("LD_PRELOAD={forged}named.so exec {opens by path}");
    CAPTURE(outcome.out, outcome.err);
    CHECK(!has_line(outcome, "0 " + std::to_string(2002 * kMiB)));
}

TEST_CASE("of several LD_PRELOAD the one counts that the loader heeds") {
    const std::string entries =
        GENERATE("LD_PRELOAD= LD_PRELOAD=libc.so.6", "LD_PRELOAD=libm.so.6 LD_PRELOAD=libc.so.6",
                 "LD_PRELOAD=libc.so.6 LD_PRELOAD=libm.so.6");
    const std::string program = GENERATE("{opens}", "{linked}");
    CAPTURE(entries, program);
    const Forging system;
    if (!system.possible())
        return;
    const Outcome outcome = system.run_text("exec {way} twice " + entries + " " + program);
    CAPTURE(outcome.out, outcome.err);
    CHECK(is_limited(outcome));
}

TEST_CASE("a preloaded C library is left out, and the rest of the list is kept") {
    const Forging system;
    if (!system.possible())
        return;
    const std::string rest = system.filled("{forged}between.so");
    const auto seen = [&](const std::string& preload) {
        return system.run_text("LD_PRELOAD=" + preload +
                               " exec env one=1 sh -c 'echo $LD_PRELOAD; cat /proc/self/comm'");
    };
    for (const std::string& preload : {rest + ":libc.so.6", "libc.so.6:" + rest, "'libc.so.6 " + rest + " {libc}'"}) {
        const Outcome outcome = seen(preload);
        CAPTURE(preload, outcome.err);
        CHECK(outcome.out == rest + "\ncat\n");
        CHECK(outcome.err.empty());
    }
    CHECK(seen("libc.so.6").out == "\ncat\n");
}

TEST_CASE("where the loader is told to preload the C library, a program is ended") {
    const std::string how = GENERATE(as<std::string>{}, "libc.so.6", "{libc}", "libm.so.6:libc.so.6");
    CAPTURE(how);
    const Forging system;
    if (!system.possible())
        return;
    for (const char* program : {"{opens}", "/bin/true"}) {
        const Outcome outcome = system.run_text("exec {loader} --preload " + how + " " + program);
        CAPTURE(outcome.out, outcome.err);
        CHECK(outcome.exit_code == 127);
        CHECK(outcome.out.empty());
        CHECK(outcome.err ==
              "cuslice: the C library is preloaded, which would hide CUDA from cuslice, so this program is ended\n");
    }
    CHECK(is_limited(system.run_text("exec {loader} --preload " + how + " {linked}")));
}

TEST_CASE("a forged mark of a second start gives no program the whole GPU") {
    const std::string mark = GENERATE(as<std::string>{}, "$$ n x", "$$ n x/y", "$$ l x", "$$ o x", "$$ c x", "$$ n",
                                      "$$ ", "$$", "1 n x", "");
    const std::string more = GENERATE(as<std::string>{}, "", "CUDA_VISIBLE_DEVICES= ", "LD_PRELOAD={library} ");
    CAPTURE(mark, more);
    const Forging system;
    if (!system.possible())
        return;
    for (const char* program : {"{opens}", "{linked}"}) {
        const Outcome outcome =
            system.run_text("export CUSLICE_STUB=\"" + mark + "\"; " + more + "exec timeout 60 " + program);
        CAPTURE(program, outcome.out, outcome.err);
        if (outcome.exit_code != 127)
            CHECK((is_limited(outcome) || has_line(outcome, "main 100 0") || has_line(outcome, "100")));
    }
}

TEST_CASE("two forged marks give no program the whole GPU") {
    const Forging system;
    if (!system.possible())
        return;
    const Outcome outcome =
        system.run_text("exec timeout 60 {way} twice \"CUSLICE_STUB=$$ n x\" \"CUSLICE_STUB=1 n x\" {linked}");
    CAPTURE(outcome.out, outcome.err);
    CHECK((is_limited(outcome) || outcome.exit_code == 127));
}

TEST_CASE("a library that was exchanged after it was loaded is not taken for cuslice's") {
    const std::string forged = GENERATE("marker", "entrance");
    const Forging system;
    if (!system.possible() || kPython.empty())
        return;
    const std::string link = system.at("exchanged.so");
    fs::create_symlink(CUSLICE_TEST_FORGED + forged + ".so", link);
    const std::string script =
        "import ctypes, os\n"
        "os.unlink(\"" +
        link +
        "\")\n"
        "os.symlink(\"" +
        system.library() + "\", \"" + link +
        "\")\n"
        "cuda = ctypes.CDLL(\"libcuda.so.1\")\n"
        "size = ctypes.c_size_t()\n"
        "print(\"main\", cuda.cuInit(0), cuda.cuDeviceTotalMem_v2(ctypes.byref(size), 0) or size.value >> 20)\n";
    const Outcome outcome = system.run_text("LD_PRELOAD=" + link + " exec " + kPython + " -c '" + script + "'");
    CAPTURE(outcome.out, outcome.err);
    CHECK(is_limited(outcome));
}

TEST_CASE("a program of another installation's cuslice run is in the slice that it was given") {
    const Forging system;
    if (!system.possible())
        return;
    const std::string other = system.at("other");
    fs::create_directories(other + "/bin");
    fs::create_directories(other + "/lib");
    fs::copy_file(kLaunch, other + "/bin/cuslice");
    fs::copy(fs::path(kPreloaded).parent_path(), other + "/lib/cuslice", fs::copy_options::recursive);
    const std::string launch = other + "/bin/cuslice run --fake 1xlaptop-2g --limit 768MiB -- ";
    CHECK(has_line(system.run_text(launch + "{opens}"), "0 " + std::to_string(768 * kMiB)));
    CHECK(has_line(system.run_text(launch + "{opens by path}"), "0 " + std::to_string(768 * kMiB)));
    CHECK(has_line(system.run_text(launch + "{linked}"), "main 0 768"));
    const Outcome quiet = system.run_text(launch + "/bin/true");
    CHECK(quiet.exit_code == 0);
    CHECK(quiet.err.empty());
}

}  // namespace cuslice::tests
