// SPDX-License-Identifier: Apache-2.0
// Frames that `cuslice top` draws of a machine, from made-up data: no terminal, no GPU.
#include <unistd.h>
#include <algorithm>

#include <sstream>
#include <string>
#include <vector>

#include "cli/top/choice.h"
#include "cli/top/help.h"
#include "config/split/identity.h"
#include "tests/cli/made_up_machine.h"

namespace cuslice::tests {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
        lines.push_back(line);
    return lines;
}

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
          "  ██████████████████▍▒▒░░░░░░░░░░░░░░░░░░░░░  7000 MiB of 15.6 GiB in use, 1000 MiB more reserved\n"
          "  limit of a program here: 8000 MiB, from /etc/cuslice/cuslice.toml\n"
          "GPU 1  NVIDIA H200                                                                      GPU-00000000\n"
          "                                              15.6 GiB, use unknown\n"
          "  ██ in use  ▒▒ reserved  ░░ free\n"
          "\n"
          "JOBS AND GROUPS\n"
          "GPU  USER        PID  COMMAND                    USED     PEAK  RESERVED    LIMIT               IDLE\n"
          "0    4000000001  811  python                  3000MiB  3001MiB   4000MiB  4000MiB  ████████▎▒▒   0 s\n"
          "0    4000000001    -  group lab: 2 processes  1500MiB  1600MiB      0MiB        -\n"
          "                 900    serve                 1000MiB                                            0 s\n"
          "                 901    worker                 500MiB                                            0 s\n"
          "1/2  4000000001   77  a.out                    100MiB   101MiB   4000MiB  4000MiB  ▎▒▒▒▒▒▒▒▒▒▒   0 s\n"
          "\n"
          "WAITING\n"
          "GPU  QUEUE  USER         PID  COMMAND    WANTS  SINCE  OVERTAKEN\n"
          "0        1  4000000001  5150  late.py  11.7GiB    0 s          2\n"
          "\n"
          "CACHES\n"
          "GPU  PID  COMMAND     LIVE     HELD     PEAK  MODE\n"
          "0    811  python   1000MiB  2000MiB  2500MiB  growth  ████████████▒▒▒▒▒▒▒▒▒▒▒▒░░░░░░\n");
}

TEST_CASE("top: jobs with a share of a GPU's time have a section, which a filter narrows and JSON has") {
    Snapshot snapshot = busy_machine();
    cli::JobTime job;
    job.gpu = snapshot.gpus[0].gpu.uuid;
    job.user = snapshot.holders.holding[0].user;
    job.name = "77-00c0ffee";
    job.pids = {811};
    job.command_line = {"python", "train.py"};
    job.share = 30;
    job.cap = 40;
    job.had = 12'300'000'000;
    job.waited = 500'000'000;
    job.state = "runs";
    job.recent = 0.254;
    snapshot.holders.times = {job};
    const std::string frame = drawn(snapshot, {120, true});
    CHECK(
        contains(frame, "\nGPU TIME\nGPU  USER        PID  COMMAND          SHARE  CAP  LATELY     HAD  WAITED  NOW"));
    CHECK(contains(frame,
                   "\n0    4000000001  811  python train.py    30%  40%     25%  12.3 s   0.5 s  runs  77-00c0ffee\n"));
    CHECK(contains(drawn(chosen(snapshot, {.filter = "train"}), {120, true}), "GPU TIME"));
    CHECK_FALSE(contains(drawn(chosen(snapshot, {.filter = "a.out"}), {120, true}), "GPU TIME"));
    CHECK(contains(drawn(snapshot, {40, true}), "30%"));
    const auto read = parse_snapshot(cli::Json::parse(json_line(json_of(snapshot))));
    REQUIRE(read);
    REQUIRE(read->holders.times.size() == 1);
    CHECK(read->holders.times[0].had == job.had);
    CHECK_FALSE(contains(drawn(busy_machine(), {120, true}), "GPU TIME"));
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
    REQUIRE(lines.size() == 108);  // a title, 3 of the GPU, the bars' pieces, a blank, 2 headings
    size_t offset = 0;
    auto frame = lines_of(plain_text(scrolled(lines, 24, offset, keys_row({}, look), look)));
    REQUIRE(frame.size() == 24);
    CHECK(frame[0].starts_with("cuslice top: 1 GPU, 100 jobs"));
    CHECK(frame[23].starts_with("q quits  ? help"));
    CHECK(frame[23].ends_with("… 85 more"));
    offset = 10;
    frame = lines_of(plain_text(scrolled(lines, 24, offset, keys_row({}, look), look)));
    CHECK(frame[0].starts_with("cuslice top: 1 GPU"));
    CHECK(contains(frame[1], " 1003 "));
    CHECK(frame[23].ends_with("10 above, … 75 more"));
    offset = 5000;
    frame = lines_of(plain_text(scrolled(lines, 24, offset, keys_row({}, look), look)));
    CHECK(offset == 85);
    CHECK(contains(frame[22], " 1099 "));
    CHECK(frame[23].ends_with("85 above"));
    // A terminal of one row has no room for anything; nothing breaks.
    for (const size_t rows : {0, 1, 2, 3})
        CHECK(scrolled(lines, rows, offset, {}, look).size() == 3);
    offset = 3;
    const Lines few = draw(machine_of_one(), look);
    frame = lines_of(plain_text(scrolled(few, 24, offset, keys_row({}, look), look)));
    CHECK(offset == 0);
    CHECK(frame[23] == "q quits  ? help");
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
        void spark(const Spark& spark, size_t columns) override {
            calls.push_back("spark of " + std::to_string(spark.values.size()) + " in " + std::to_string(columns));
        }
        void end_line() override { calls.emplace_back("end"); }
        bool flush() override { return true; }

        std::vector<std::string> calls;
    } recording;
    const Look look{100, true};
    Snapshot snapshot = busy_machine();
    snapshot.gpus[0].moments.used = {0, 0.5, 1};
    const Lines lines = draw(snapshot, look);
    draw(lines, recording);
    CHECK(std::ranges::count(recording.calls, "spark of 3 in 42") == 1);
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
    CHECK(bar(0, 0, 100) == "░░░░░░░░");
    CHECK(bar(1, 0, 1000) == "▏░░░░░░░");
    CHECK(bar(1, 0, 1000, false) == "#.......");
    CHECK(bar(50, 0, 100) == "████░░░░");
    CHECK(bar(50, 25, 100) == "████▒▒░░");
    CHECK(bar(50, 25, 100, false) == "####--..");
    CHECK(bar(100, 0, 100) == "████████");
    CHECK(bar(300, 50, 100) == "████████");
    CHECK(bar(5, 5, 0) == "        ");
}

TEST_CASE("top: a spark-line has its last value at the right, and as many as there is room for") {
    const auto spark = [](std::vector<double> values, size_t columns, bool utf8 = true) {
        TextCanvas canvas(utf8, false);
        canvas.text("|", Tone::plain);
        canvas.spark({std::move(values)}, columns);
        canvas.text("|", Tone::plain);
        canvas.end_line();
        const std::string text = canvas.drawn();
        CHECK(columns_of(text.substr(0, text.size() - 1)) == columns + 2);
        return text.substr(1, text.size() - 3);
    };
    CHECK(spark({0, 0.5, 1}, 5) == "  ▁▅█");
    CHECK(spark({0, 0.5, 1}, 2) == "▅█");
    CHECK(spark({-1, 7}, 2) == "▁█");
    CHECK(spark({0, 1}, 3, false) == " _#");
    CHECK(spark({}, 3) == "   ");
    CHECK(spark({1}, 0).empty());
}

TEST_CASE("top: a GPU's sensors and last moments are shown as far as they are known, at every width") {
    Snapshot snapshot = busy_machine();
    snapshot.gpus[0].gpu.sensors = {63, 41, 310'400, 700'000};
    snapshot.gpus[1].gpu.sensors = {{}, 38, {}, 700'000};
    snapshot.gpus[0].moments = {{0.2, 0.3, 0.4}, {0.1, 0.9}};
    const std::string frame = drawn(snapshot, {100, true});
    CHECK(contains(frame, "63 %  41 °C  310/700 W  GPU-00000000\n"));
    CHECK(contains(frame, "  38 °C  GPU-00000000\n"));
    CHECK(contains(frame, "▂▃▄  in use over time  load "));
    CHECK(contains(frame, "▂▇\n"));
    const std::string narrow = drawn(snapshot, {40, true});
    CHECK(contains(narrow, "63 % 41 °C\n"));
    CHECK(contains(narrow, "▂▃▄"));
    CHECK_FALSE(contains(narrow, "310"));
    CHECK(contains(drawn(snapshot, {100, false}), "63 %  41 C  310/700 W"));
    for (size_t width = 20; width <= 300; ++width)
        drawn(snapshot, {width, width % 2 == 0});
    // Two moments make a line.
    snapshot.gpus[0].moments = {{0.2}, {0.1}};
    CHECK_FALSE(contains(drawn(snapshot, {100, true}), "over time"));
}

TEST_CASE("top: jobs can be folded, and a filter that nothing has says so") {
    const auto frame = [](const Choice& choice) { return plain_text(draw(busy_machine(), {100, true}, choice)); };
    CHECK(contains(frame({}), "  worker"));
    CHECK_FALSE(contains(frame({.unfolded = false}), "  worker"));
    CHECK(contains(frame({.unfolded = false}), "group lab: 2 processes"));
    const std::string filtered = frame({.filter = "nothing like it"});
    CHECK(contains(filtered, "No job or group has this text in it."));
    CHECK(contains(filtered, "2 GPUs, 2 jobs, 1 group, 1 waiting"));
    CHECK(contains(filtered, "1000 MiB more reserved"));
    CHECK_FALSE(contains(filtered, "WAITING"));
}

TEST_CASE("top: the last row says what is chosen, and the help names every key") {
    const Look look{80, true};
    CHECK(keys_row({}, look).text == "q quits  ? help");
    CHECK(keys_row({.order = Order::used}, look).text == "q quits  ? help  by used ↓");
    CHECK(keys_row({.order = Order::used, .reversed = true}, look).text == "q quits  ? help  by used ↑");
    CHECK(keys_row({.filter = "a\x1b"}, look).text == "q quits  ? help  only \"a\\x1b\"");
    for (const size_t width : {40, 80, 300}) {
        const Lines lines = draw_help({width, true});
        for (const Line& line : lines)
            CHECK(columns_of(line) <= width);
        const std::string text = plain_text(lines);
        for (const char* key : {"  s ", "  / ", "  t ", "  l ", "  ↑ ↓ PgUp PgDn ", "  ? h ", "  q Ctrl-C "})
            CHECK(contains(text, key));
        CHECK(contains(text, "██ in use  ▒▒ reserved  ░░ free"));
    }
    const std::string ascii = plain_text(draw_help({80, false}), false);
    CHECK(std::all_of(ascii.begin(), ascii.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

TEST_CASE("top: whose limit can be changed is who is of this user") {
    Snapshot snapshot = busy_machine();
    const Look look{80, true};
    CHECK(targets(snapshot, look).empty());
    for (cli::Holder& holder : snapshot.holders.holding)
        holder.user = ::geteuid();
    const std::vector<Target> all = targets(snapshot, look);
    REQUIRE(all.size() == 3);
    CHECK(all[0].kind == "job");
    CHECK(all[0].name == "811-00c0ffee");
    CHECK(all[0].gpu == uuid(0));
    CHECK(all[0].shown == "job python on GPU 0");
    CHECK(all[0].limit == 4000 * kMiB);
    CHECK(all[1].shown == "group lab on GPU 0");
    CHECK(all[2].shown == "job a.out on GPU 1/2");
    snapshot.holders.holding[0].kind = "rule";
    CHECK(targets(snapshot, look).size() == 2);
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
    for (const char* sensor : {"busy_percent", "temperature", "power", "power_limit"})
        CHECK(json["gpus"][0][sensor].is_null());
    Snapshot snapshot = busy_machine();
    snapshot.gpus[0].gpu.sensors = {63, 41, 310'400, 700'000};
    cli::Json told = cli::Json::parse(json_line(json_of(snapshot)));
    CHECK(told["gpus"][0]["busy_percent"] == 63);
    CHECK(told["gpus"][0]["temperature"] == 41);
    CHECK(told["gpus"][0]["power"] == 310'400);
    CHECK(told["gpus"][0]["power_limit"] == 700'000);
    const auto read = parse_snapshot(told);
    REQUIRE(read);
    CHECK(read->gpus[0].gpu.sensors.power == 310'400);
    CHECK_FALSE(read->gpus[1].gpu.sensors.busy);
    told["gpus"][0].erase("power");  // as earlier ones have it
    CHECK(parse_snapshot(told));
    told["gpus"][0]["busy_percent"] = "all";
    CHECK_FALSE(parse_snapshot(told));
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
