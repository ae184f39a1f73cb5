// SPDX-License-Identifier: Apache-2.0
// Frames that `cuslice top` draws of a machine, from made-up data: no terminal, no GPU.
#include <algorithm>
#include <sstream>

#include "cli/top/canvas.h"
#include "cli/top/live.h"
#include "cli/top/view.h"
#include "config/split/identity.h"
#include "policy/base/kernel_clock.h"
#include "policy/ledger/accounts.h"
#include "tests/catch.h"

namespace cuslice::tests {
namespace {

using namespace cli::top;

constexpr uint64_t kMiB = 1 << 20;
constexpr unsigned kNobody = 4'000'000'001;  // a user without a name

std::string uuid(unsigned number) { return "GPU-00000000-0000-0000-0000-00000000000" + std::to_string(number); }

cli::Gpu gpu(int index, uint64_t total, std::optional<uint64_t> free, std::string name = "NVIDIA H200") {
    cli::Gpu one;
    one.ordinal = index;
    one.name = std::move(name);
    one.uuid = uuid(static_cast<unsigned>(index));
    one.pci = "00000000:0" + std::to_string(index) + ":00.0";
    one.total = total * kMiB;
    if (free)
        one.free = *free * kMiB;
    return one;
}

cli::Holder job(int pid, std::string command, uint64_t used, uint64_t limit) {
    cli::Holder holder;
    holder.gpu = uuid(0);
    holder.user = kNobody;
    holder.kind = "job";
    holder.name = std::to_string(pid) + "-00c0ffee";
    holder.pid = pid;
    holder.command = std::move(command);
    holder.used = holder.together = used * kMiB;
    holder.peak = (used + 1) * kMiB;
    holder.reserved = holder.limit = limit * kMiB;
    holder.since = now_realtime();
    return holder;
}

Snapshot machine_of_one() {
    Snapshot snapshot;
    snapshot.clock = "12:34:56";
    snapshot.gpus = {{gpu(0, 16000, 9000), 8000 * kMiB, "/etc/cuslice/cuslice.toml"}};
    snapshot.places[uuid(0)] = {0, {}};
    return snapshot;
}

Snapshot busy_machine() {
    Snapshot snapshot = machine_of_one();
    snapshot.gpus.push_back({gpu(1, 16000, {}), {}, {}});
    snapshot.places[uuid(1)] = {1, {}};
    snapshot.places["GPU-part"] = {1, 2};
    auto& holding = snapshot.holders.holding;
    holding = {job(811, "python", 3000, 4000), job(900, "serve", 1000, 8000), job(901, "worker", 500, 8000),
               job(77, "a.out", 100, 4000)};
    // Two processes in a group, which reserves nothing and has no limit.
    for (const int i : {1, 2}) {
        holding[i].kind = "group", holding[i].name = "lab", holding[i].together = 1500 * kMiB;
        holding[i].peak = 1600 * kMiB;
        holding[i].reserved = 0, holding[i].limit = ledger::kNoLimitBytes, holding[i].inner = true;
    }
    holding[3].gpu = "GPU-part";
    cli::WaitingProcess waiting{uuid(0), {}, 1, 2};
    waiting.waiter.user = kNobody, waiting.waiter.pid = 5150, waiting.waiter.bytes = 12000 * kMiB;
    waiting.waiter.since = now_realtime();
    std::string("late.py").copy(waiting.waiter.command, 7);
    snapshot.holders.waiting = {waiting};
    Cache cache{811, "python", {}};
    cache.stats.uuid = uuid(0), cache.stats.mode = 1;
    cache.stats.statistics.allocated.current = 1000 * kMiB;
    cache.stats.statistics.reserved.current = 2000 * kMiB, cache.stats.statistics.reserved.peak = 2500 * kMiB;
    snapshot.caches = {cache};
    return snapshot;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
        lines.push_back(line);
    return lines;
}

std::string plain_text(const Lines& lines, bool utf8 = true) {
    TextCanvas canvas(utf8, false);
    draw(lines, canvas);
    return canvas.drawn();
}

std::string drawn(const Snapshot& snapshot, const Look& look) {
    const Lines lines = draw(snapshot, look);
    for (const Line& line : lines) {
        CAPTURE(plain_text(Lines{line}));
        CHECK(columns_of(line) <= look.width);
    }
    return plain_text(lines, look.utf8);
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("top: the slice that a rule has processes share is told from jobs and groups") {
    Snapshot snapshot = busy_machine();
    auto& holding = snapshot.holders.holding;
    for (const int i : {1, 2})
        holding[i].kind = "rule", holding[i].name = "students";
    const std::string frame = drawn(snapshot, {100, true});
    CHECK(contains(frame, "2 GPUs, 2 jobs, 1 rule, 1 waiting"));
    CHECK(contains(frame, "rule students: 2 processes"));
}

TEST_CASE("top: a frame has GPUs, jobs, groups with their members, partitions, the queue and caches") {
    CHECK(drawn(busy_machine(), {100, true}) ==
          "cuslice top: 2 GPUs, 2 jobs, 1 group, 1 waiting                                             12:34:56\n"
          "GPU 0  NVIDIA H200                                                                      GPU-00000000\n"
          "  ██████████████████▍░░                       7000 MiB of 15.6 GiB in use, 1000 MiB more reserved\n"
          "  limit of a program here: 8000 MiB, from /etc/cuslice/cuslice.toml\n"
          "GPU 1  NVIDIA H200                                                                      GPU-00000000\n"
          "                                              15.6 GiB, use unknown\n"
          "\n"
          "JOBS AND GROUPS\n"
          "GPU  USER        PID  COMMAND                    USED     PEAK  RESERVED    LIMIT               IDLE\n"
          "0    4000000001  811  python                  3000MiB  3001MiB   4000MiB  4000MiB  ████████▎░░   0 s\n"
          "0    4000000001    -  group lab: 2 processes  1500MiB  1600MiB      0MiB        -\n"
          "                 900    serve                 1000MiB                                            0 s\n"
          "                 901    worker                 500MiB                                            0 s\n"
          "1/2  4000000001   77  a.out                    100MiB   101MiB   4000MiB  4000MiB  ▎░░░░░░░░░░   0 s\n"
          "\n"
          "WAITING\n"
          "GPU  QUEUE  USER         PID  COMMAND    WANTS  SINCE  OVERTAKEN\n"
          "0        1  4000000001  5150  late.py  11.7GiB    0 s          2\n"
          "\n"
          "CACHES\n"
          "GPU  PID  COMMAND     LIVE     HELD     PEAK  MODE\n"
          "0    811  python   1000MiB  2000MiB  2500MiB  growth  ████████████░░░░░░░░░░░░\n");
}

TEST_CASE(
    "top: a long command line is cut off before the columns that matter are left out, and shown where there is room") {
    Snapshot snapshot = busy_machine();
    const std::string fake = "GPU-f9859788-3006-4d00-a248-dd632703aa8d";
    snapshot.holders.holding[0].command_line = {"/usr/bin/python3", "/home/alice/train.py", std::string(3000, 'x')};
    snapshot.holders.holding[3].command_line = {"a.out", "\x1b[31m"};
    snapshot.holders.holding[3].gpu = fake;
    snapshot.holders.waiting[0].command_line = {"cuslice", "run", "--", "late.py", "--epochs", "9"};
    snapshot.caches[0].command_line = {"python", "serve.py"};
    const std::string frame = drawn(snapshot, {100, true});
    CHECK(contains(frame, "  python3 train.py xxxxxxxxx"));
    CHECK(contains(frame, "LIMIT"));
    CHECK(contains(frame, "  a.out \\x1b[31m "));
    CHECK(contains(frame, "\nGPU-f9859788 fake  "));
    CHECK(contains(frame, "  late.py --epochs 9 "));
    CHECK(contains(frame, "  python serve.py "));
    CHECK(contains(drawn(snapshot, {180, true}), "  python3 train.py " + std::string(40, 'x')));
    snapshot.gpus[0].gpu.uuid = fake;
    CHECK(contains(drawn(snapshot, {100, true}), "GPU 0  NVIDIA H200 (fake)"));
}

TEST_CASE("top: what another machine says of command lines is read, and nothing of one that is none") {
    Snapshot snapshot = busy_machine();
    snapshot.holders.holding[0].command_line = {"python", std::string(5000, 'x'), "y"};
    cli::Json document = cli::Json::parse(json_line(json_of(snapshot)));
    auto read = parse_snapshot(document);
    REQUIRE(read);
    CHECK(read->holders.holding[0].command_line == std::vector<std::string>{"python", std::string(4089, 'x')});
    CHECK(read->holders.holding[1].command_line.empty());
    document["processes"][1].erase("command_line");  // as earlier ones have it
    CHECK(parse_snapshot(document));
    for (const cli::Json& bad : {cli::Json("x"), cli::Json::object(), cli::Json::parse("[1]")}) {
        document["processes"][1]["command_line"] = bad;
        CHECK_FALSE(parse_snapshot(document));
    }
}

TEST_CASE("top: 40 columns are enough for who holds how much of which limit, and nothing is wider") {
    const std::string text = drawn(busy_machine(), {40, true});
    for (const char* part : {"2 GPUs, 2 jobs", "GPU 0  NVIDIA H200", "7000MiB/15.6GiB", "COMMAND", "USED", "LIMIT",
                             " 811 ", "3000", "4000", "group lab", "900", "901", "5150", "11.7GiB", "LIVE", "HELD"})
        CHECK(contains(text, part));
    for (size_t width = 20; width <= 200; ++width)
        drawn(busy_machine(), {width, width % 2 == 0});
}

TEST_CASE("top: a terminal that is wide enough shows each column that the table of columns has for top") {
    const std::string text = drawn(busy_machine(), {400, true});
    for (const auto of : {cli::TopColumn::Of::account, cli::TopColumn::Of::process})
        for (const cli::HolderColumn* column : cli::top_columns(of)) {
            CAPTURE(std::string(column->key));
            CHECK(contains(text, "  " + std::string(column->top.heading)));
            CHECK(contains(text, "  " + column->kind.cell(busy_machine().holders.holding[0], cli::Form::tight).text));
        }
}

TEST_CASE("top: without UTF-8 everything is ASCII") {
    Snapshot snapshot = busy_machine();
    snapshot.holders.holding[0].command = "schön";
    snapshot.gpus[0].gpu.name = "图形";
    const std::string text = drawn(snapshot, {100, false});
    CHECK(std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
    CHECK(contains(text, "##################---"));
    CHECK(contains(text, "sch\\xc3\\xb6n"));
}

TEST_CASE("top: names do nothing to a terminal, whoever chose them") {
    const std::string hostile = "\x1b[2J\x1b]0;x\x07\r\n\t\x9b\xc2\x9b\u202e\xff";
    Snapshot snapshot = busy_machine();
    snapshot.gpus[0].gpu.name = snapshot.gpus[0].gpu.uuid = snapshot.gpus[0].origin = hostile;
    snapshot.gpus_failure = hostile;
    for (cli::Holder& holder : snapshot.holders.holding)
        holder.name = holder.command = holder.gpu = hostile;
    hostile.copy(snapshot.holders.waiting[0].waiter.command, hostile.size());
    snapshot.holders.waiting[0].gpu = hostile;
    snapshot.caches[0].command = snapshot.caches[0].stats.uuid = hostile;
    snapshot.holders.failures = {hostile};
    for (const size_t width : {40, 80, 300}) {
        const std::string text = drawn(snapshot, {width, true});
        CHECK(contains(text, width < 80 ? "\\x1b[2J" : "\\x1b[2J\\x1b]0;x\\x07"));
        for (const char c : text) {
            const auto byte = static_cast<unsigned char>(c);
            if (byte == 0x1b || byte == 0x7f || byte == 0xff || (byte < 0x20 && byte != '\n'))
                FAIL(text);
        }
        CHECK_FALSE(contains(text, "\xc2\x9b"));
        CHECK_FALSE(contains(text, "\u202e"));
    }
}

TEST_CASE("top: characters count by their columns, wide ones as two and accents as none") {
    const Look look{80, true};
    CHECK(columns_of("né") == 2);
    CHECK(columns_of("ne\u0301") == 2);
    CHECK(columns_of("图形") == 4);
    CHECK(clipped("图形处理", 8, look) == "图形处理");
    CHECK(clipped("图形处理", 7, look) == "图形处…");
    CHECK(clipped("图形处理", 6, look) == "图形…");
    CHECK(clipped("abc", 2, {80, false}) == "a~");
    CHECK(clipped("abc", 0, look).empty());
}

TEST_CASE("top: a machine without a GPU or a job says so") {
    Snapshot snapshot;
    snapshot.gpus_failure = "libcuda.so.1: not found";
    const std::string text = drawn(snapshot, {80, true});
    CHECK(text ==
          "cuslice top: 0 GPUs, 0 jobs\n"
          "No GPU can be listed: libcuda.so.1: not found\n"
          "\n"
          "No job or group holds or reserves anything here.\n");
    snapshot.holders.failures = {"0-x.ledger: it was cut short"};
    CHECK(contains(drawn(snapshot, {80, true}),
                   "Who holds what here could not be seen.\n0-x.ledger: it was cut short\n"));
    // Nobody says it but the frame: it goes on in the next line.
    snapshot.gpus_failure = std::string(90, 'x') + " end";
    CHECK(contains(drawn(snapshot, {80, true}), "x end\n"));
    snapshot.gpus_known = false;
    snapshot.gpus_failure.clear();
    CHECK(contains(drawn(snapshot, {80, true}), "Asking which GPUs there are"));
}

TEST_CASE("top: what doesn't fit into the terminal can be scrolled to, and its lines are counted") {
    Snapshot snapshot = machine_of_one();
    for (int i = 0; i < 100; ++i)
        snapshot.holders.holding.push_back(job(1000 + i, "python", 1, 2));
    const Look look{80, true};
    const Lines lines = draw(snapshot, look);
    REQUIRE(lines.size() == 107);  // a title, 3 of the GPU, a blank, 2 headings
    size_t offset = 0;
    auto frame = lines_of(plain_text(scrolled(lines, 24, offset, look)));
    REQUIRE(frame.size() == 24);
    CHECK(frame[0].starts_with("cuslice top: 1 GPU, 100 jobs"));
    CHECK(frame[23].starts_with("q quits  ↑ ↓ PgUp PgDn"));
    CHECK(frame[23].ends_with("… 84 more"));
    offset = 10;
    frame = lines_of(plain_text(scrolled(lines, 24, offset, look)));
    CHECK(frame[0].starts_with("cuslice top: 1 GPU"));
    CHECK(contains(frame[1], " 1004 "));
    CHECK(frame[23].ends_with("10 above, … 74 more"));
    offset = 5000;
    frame = lines_of(plain_text(scrolled(lines, 24, offset, look)));
    CHECK(offset == 84);
    CHECK(contains(frame[22], " 1099 "));
    CHECK(frame[23].ends_with("84 above"));
    // A terminal of one row has no room for anything; nothing breaks.
    for (const size_t rows : {0, 1, 2, 3})
        CHECK(scrolled(lines, rows, offset, look).size() == 3);
    offset = 3;
    const Lines few = draw(machine_of_one(), look);
    frame = lines_of(plain_text(scrolled(few, 24, offset, look)));
    CHECK(offset == 0);
    CHECK(frame[23] == "q quits");
}

TEST_CASE("top: a frame can be drawn on any canvas, which is told of texts, their tones, and bars") {
    class Recording : public Canvas {
      public:
        void text(const std::string& text, Tone tone) override {
            if (text.find_first_not_of(' ') != text.npos)
                calls.push_back("text " + std::to_string(int(tone)));
        }
        void bar(const Bar& bar, size_t columns) override {
            calls.push_back("bar " + std::to_string(bar.used / kMiB) + "+" + std::to_string(bar.reserved / kMiB) +
                            " of " + std::to_string(bar.most / kMiB) + " in " + std::to_string(columns));
        }
        void end_line() override { calls.emplace_back("end"); }
        bool flush() override { return true; }

        std::vector<std::string> calls;
    } recording;
    const Look look{100, true};
    const Lines lines = draw(busy_machine(), look);
    draw(lines, recording);
    CHECK(std::ranges::count(recording.calls, "end") == static_cast<ptrdiff_t>(lines.size()));
    CHECK(std::ranges::count(recording.calls, "bar 7000+1000 of 16000 in 42") == 1);
    CHECK(std::ranges::count(recording.calls, "bar 1000+1000 of 2500 in 30") == 1);
    CHECK(recording.calls.front() == "text " + std::to_string(int(Tone::heading)));
}

TEST_CASE("top: a bar draws something where there is something, and is full only where all is taken") {
    const auto bar = [](uint64_t used, uint64_t reserved, uint64_t most, bool utf8 = true) {
        TextCanvas canvas(utf8, false);
        canvas.text("|", Tone::plain);
        canvas.bar({used, reserved, most}, 8);
        canvas.text("|", Tone::plain);
        canvas.end_line();
        std::string text = canvas.drawn();
        CHECK(columns_of(text.substr(0, text.size() - 1)) == 10);
        return text.substr(1, text.size() - 3);
    };
    CHECK(bar(0, 0, 100) == "        ");
    CHECK(bar(1, 0, 1000) == "▏       ");
    CHECK(bar(1, 0, 1000, false) == "#       ");
    CHECK(bar(50, 0, 100) == "████    ");
    CHECK(bar(50, 25, 100) == "████░░  ");
    CHECK(bar(50, 25, 100, false) == "####--  ");
    CHECK(bar(100, 0, 100) == "████████");
    CHECK(bar(300, 50, 100) == "████████");
    CHECK(bar(5, 5, 0) == "        ");
}

TEST_CASE("top: keys scroll and quit, also where a sequence comes in pieces or begins in vain") {
    using Wish = Keys::Wish;
    const auto wishes = [](const std::string& bytes) {
        Keys keys;
        std::vector<Wish> all;
        for (const char byte : bytes)
            if (const Wish wish = keys.read(byte); wish != Wish::none)
                all.push_back(wish);
        return all;
    };
    CHECK(wishes("\x1b[A\x1b[B\x1bOA\x1bOB") == std::vector{Wish::up, Wish::down, Wish::up, Wish::down});
    CHECK(wishes("\x1b[5~\x1b[6~ ") == std::vector{Wish::page_up, Wish::page_down, Wish::page_down});
    CHECK(wishes("\x1b[H\x1b[F\x1b[1~\x1b[4~gG") ==
          std::vector{Wish::top, Wish::bottom, Wish::top, Wish::bottom, Wish::top, Wish::bottom});
    CHECK(wishes("q") == std::vector{Wish::quit});
    CHECK(wishes("\x1bq") == std::vector{Wish::quit});
    CHECK(wishes("\x1b\x1b[Ak") == std::vector{Wish::up, Wish::up});
    // A key that means nothing here holds no q in it.
    CHECK(wishes("\x1b[24;5~x").empty());
    CHECK(wishes("\x1b[" + std::string(40, '1') + "~").empty());
}

TEST_CASE("top: the JSON document has what ps has, and says of which GPU or partition it is") {
    const cli::Json json = json_of(busy_machine());
    CHECK(json["version"] == 1);
    CHECK(json["gpus"][0]["used"] == 7000 * kMiB);
    CHECK(json["gpus"][0]["total"] == 16000 * kMiB);
    CHECK(json["gpus"][0]["limit"] == 8000 * kMiB);
    CHECK(json["gpus"][0]["origin"] == "/etc/cuslice/cuslice.toml");
    CHECK(json["gpus"][0]["reserved_beyond_use"] == 1000 * kMiB);
    CHECK(json["gpus"][1]["used"].is_null());
    CHECK(json["gpus"][1]["limit"].is_null());
    REQUIRE(json["processes"].size() == 4);
    CHECK(json["processes"][0]["index"] == 0);
    CHECK(json["processes"][0]["partition"].is_null());
    CHECK(json["processes"][3]["index"] == 1);
    CHECK(json["processes"][3]["partition"] == 2);
    CHECK(json["processes"][1]["limit"].is_null());
    CHECK(json["waiting"][0]["bytes"] == 12000 * kMiB);
    CHECK(json["caches"][0]["pid"] == 811);
    CHECK(json["caches"][0]["allocated"]["current"] == 1000 * kMiB);
}

TEST_CASE("top: a partition's ledger is told by its UUID, and stands behind its GPU") {
    cli::Gpus gpus;
    gpus.list = {gpu(0, 16000, 16000), gpu(1, 16000, 16000)};
    const Settings settings;
    const Snapshot snapshot = take_snapshot(settings, "/nowhere", &gpus);
    GpuIdentity identity;
    gpus.list[1].uuid.copy(identity.uuid, sizeof identity.uuid - 1);
    gpus.list[1].pci.copy(identity.pci, sizeof identity.pci - 1);
    const auto found = snapshot.places.find(identity_of_part(identity, 3).uuid);
    REQUIRE(found != snapshot.places.end());
    CHECK(found->second.index == 1);
    CHECK(found->second.partition == 3);
    CHECK(snapshot.holders.holding.empty());
}

}  // namespace cuslice::tests
