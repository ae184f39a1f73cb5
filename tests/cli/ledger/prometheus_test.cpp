// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/prometheus.h"

#include <unistd.h>

#include <algorithm>

#include "config/printable.h"
#include "policy/ledger/ledger.h"
#include "policy/ledger/total.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/ledger_job.h"
#include "tests/cli/tree.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

bool has_line(const std::string& text, const std::string& line) {
    return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

// An account's process, of a user that nobody has.
cli::Holder process(const std::string& kind, const std::string& name, uint64_t together, uint64_t reserved,
                    bool inner = false) {
    cli::Holder row;
    row.gpu = "GPU-a";
    row.user = 4242424;
    row.kind = kind;
    row.name = name;
    row.inner = inner;
    row.together = together;
    row.peak = together + 7;
    row.reserved = reserved;
    row.limit = reserved != 0 ? reserved : ledger::kNoLimit;
    return row;
}

const std::string kOwner = "gpu=\"GPU-a\",uid=\"4242424\",user=\"4242424\",kind=\"";

cli::Holders busy() {
    cli::Holders found;
    found.capacities = {{"GPU-a", 1000}, {"GPU-b", 2000}};
    found.holding = {process("job", "one", 300, 400), process("job", "one", 300, 400), process("job", "two", 250, 100),
                     process("job", "within", 50, 0, true), process("group", "lab", 70, 0, true)};
    cli::WaitingProcess waiting;
    waiting.gpu = "GPU-a";
    waiting.waiter.bytes = 600;
    found.waiting = {waiting, waiting};
    found.failures = {"why"};
    return found;
}

std::string promtool() {
    for (const char* path : {"/usr/bin/promtool", "/usr/local/bin/promtool"})
        if (::access(path, X_OK) == 0)
            return path;
    return {};
}

}  // namespace

TEST_CASE("ps --prometheus counts an account once, however many processes are in it") {
    const std::string text = cli::prometheus_text(busy());
    CHECK(has_line(text, "cuslice_account_used_bytes{" + kOwner + "job\",name=\"one\"} 300"));
    CHECK(has_line(text, "cuslice_account_peak_bytes{" + kOwner + "job\",name=\"one\"} 307"));
    CHECK(has_line(text, "cuslice_account_peak_bytes{" + kOwner + "group\",name=\"lab\"} 77"));
    CHECK(has_line(text, "cuslice_account_reserved_bytes{" + kOwner + "job\",name=\"one\"} 400"));
    CHECK(has_line(text, "cuslice_account_limit_bytes{" + kOwner + "job\",name=\"one\"} 400"));
    CHECK(has_line(text, "cuslice_account_processes{" + kOwner + "job\",name=\"one\"} 2"));
    CHECK(has_line(text, "cuslice_account_used_bytes{" + kOwner + "group\",name=\"lab\"} 70"));
    // No limit is no figure.
    CHECK(text.find("limit_bytes{" + kOwner + "group") == std::string::npos);
}

TEST_CASE("ps --prometheus: a process in no job counts in its GPU's sums, once, whatever accounts it is in") {
    cli::Holders found = busy();
    for (const char* kind : {"group", "rule"}) {
        cli::Holder alone = process(kind, "lab", 70, 0, true);
        alone.pid = 812;
        alone.used = 30;
        found.holding.push_back(alone);
    }
    const std::string text = cli::prometheus_text(found);
    CHECK(has_line(text, "cuslice_gpu_used_bytes{gpu=\"GPU-a\"} 580"));
    CHECK(has_line(text, "cuslice_gpu_committed_bytes{gpu=\"GPU-a\"} 680"));
    CHECK(has_line(text, "cuslice_gpu_jobs{gpu=\"GPU-a\"} 2"));
}

TEST_CASE("ps --prometheus has no fake GPU, unless fake GPUs are asked for, and no command line") {
    const std::string fake = "GPU-f9859788-3006-4d00-a248-dd632703aa8d";
    cli::Holders found = busy();
    found.capacities[fake] = 1000;
    found.holding.push_back(process("job", "on a fake one", 300, 400));
    found.holding.back().gpu = fake;
    for (cli::Holder& row : found.holding)
        row.command_line = {"python", "--token=secret"};
    found.waiting.push_back(found.waiting[0]);
    found.waiting.back().gpu = fake;
    found.waiting.back().command_line = {"cuslice", "--token=secret"};
    const std::string all = cli::prometheus_text(found);
    CHECK(all.find(fake) != std::string::npos);
    CHECK(all.find("secret") == std::string::npos);
    CHECK(cli::prometheus_text(cli::without_fakes(found)) == cli::prometheus_text(busy()));

    const Folder folder;
    const LedgerJob job(folder.path(), fake);
    const auto ask = [&](Words words) {
        return run(with({kLauncher, "ps", "--dir", folder.path()}, words), plain_environment("/nowhere")).out;
    };
    CHECK(ask({"--prometheus"}).find(fake) == std::string::npos);
    CHECK(ask({"--prometheus", "--fake", "2xstub"}).find(fake) != std::string::npos);
    CHECK(ask({}).find(fake.substr(0, 12) + " fake  ") != std::string::npos);
    CHECK(cli::Json::parse(ask({"--json"}))["processes"][0]["fake"] == true);
}

TEST_CASE("ps --wide prints whole command lines, and has no meaning but for the table") {
    const Folder folder;
    const LedgerJob job(folder.path(), "GPU-a");
    const auto ask = [&](Words words) {
        return run(with({kLauncher, "ps", "--dir", folder.path()}, words), plain_environment("/nowhere"));
    };
    const auto own = cli::Json::parse(ask({"--json"}).out)["processes"][0]["command_line"];
    std::string command;
    for (const std::string word : own)
        command += (command.empty() ? "" : " ") + word;
    REQUIRE(!command.empty());
    const std::string wide = ask({"--wide"}).out;
    CHECK(std::count(wide.begin(), wide.end(), '\n') == 2);
    std::string shown = "  ";
    append_printable(shown, command).append("  job ");
    CHECK(wide.find(shown) != std::string::npos);
    for (const Words& bad : {Words{"--wide", "--json"}, Words{"--prometheus", "--wide"}, Words{"--wide", "--job=x"}}) {
        const Outcome refused = ask(bad);
        CHECK(refused.exit_code == 64);
        CHECK(refused.err ==
              "cuslice: --wide: means nothing without the table: leave out --json, --prometheus and --job\n");
    }
    CHECK(ask({"--wide=x"}).err == "cuslice: --wide: takes no value\n");
}

TEST_CASE("ps --prometheus: a GPU's figures have each job as the larger of what it holds and has reserved") {
    const std::string text = cli::prometheus_text(busy());
    CHECK(has_line(text, "cuslice_gpu_capacity_bytes{gpu=\"GPU-a\"} 1000"));
    CHECK(has_line(text, "cuslice_gpu_used_bytes{gpu=\"GPU-a\"} 550"));
    CHECK(has_line(text, "cuslice_gpu_committed_bytes{gpu=\"GPU-a\"} 650"));
    CHECK(has_line(text, "cuslice_gpu_jobs{gpu=\"GPU-a\"} 2"));
    CHECK(has_line(text, "cuslice_gpu_waiting_processes{gpu=\"GPU-a\"} 2"));
    CHECK(has_line(text, "cuslice_gpu_waiting_bytes{gpu=\"GPU-a\"} 1200"));
    // One that nobody is on has figures too: of a series that ends, a graph shows the last one.
    CHECK(has_line(text, "cuslice_gpu_used_bytes{gpu=\"GPU-b\"} 0"));
    CHECK(has_line(text, "cuslice_ledger_failures 1"));
}

TEST_CASE("ps --prometheus: what other users write into their ledgers doesn't spoil the file") {
    cli::Holders found;
    found.holding = {process("job", "a\"b\\c\nd\xff", UINT64_MAX, 0), process("job", "other", UINT64_MAX, 0),
                     process("job", "other", 1, 0)};
    const std::string text = cli::prometheus_text(found);
    // Backslashes of what was escaped, and of the format.
    CHECK(has_line(text, "cuslice_account_used_bytes{" + kOwner +
                             "job\",name=\"a\\\"b\\\\\\\\c\\\\x0ad\\\\xff\"} 18446744073709551615"));
    CHECK(has_line(text, "cuslice_gpu_used_bytes{gpu=\"GPU-a\"} 18446744073709551615"));
    for (size_t at = 0, end = 0; at < text.size(); at = end + 1) {
        end = text.find('\n', at);
        const std::string line = text.substr(at, end - at);
        INFO(line);
        CHECK((line[0] == '#' || line.starts_with("cuslice_")));
        if (line[0] != '#')
            CHECK(text.find("\n" + line.substr(0, line.rfind(' ') + 1), end) == std::string::npos);
    }
}

TEST_CASE("ps --prometheus is what promtool takes") {
    if (promtool().empty())
        return skip("there is no promtool here");
    cli::Holders found = busy();
    found.holding.push_back(process("job", "a\"b\\c\nd\xff", 1, 0));
    const Folder folder;
    const std::string file = folder.write("cuslice.prom", cli::prometheus_text(found));
    const Outcome outcome =
        run({"/bin/sh", "-c", promtool() + " check metrics < " + file}, plain_environment(folder.path()));
    CHECK(outcome.out + outcome.err == "");
    CHECK(outcome.exit_code == 0);
}

TEST_CASE("ps --prometheus is for ps alone, without a value and without --json") {
    const auto cuslice = [](Words words) {
        words.insert(words.begin(), kLauncher);
        return run(words, plain_environment("/nowhere"));
    };
    const Folder folder;
    const Outcome empty = cuslice({"ps", "--prometheus", "--dir", folder.path()});
    CHECK(empty.exit_code == 0);
    CHECK(empty.err.empty());
    CHECK(empty.out == cli::prometheus_text({}));
    CHECK(cuslice({"ps", "--json", "--prometheus"}).err == "cuslice: --prometheus: give it or --json, not both\n");
    CHECK(cuslice({"ps", "--json", "--prometheus"}).exit_code == 64);
    CHECK(cuslice({"ps", "--prometheus=yes"}).err == "cuslice: --prometheus: takes no value\n");
    CHECK(cuslice({"top", "--prometheus"}).exit_code == 64);
    CHECK(cuslice({"ps", "--help"}).out.find("--prometheus") != std::string::npos);
}

}  // namespace cuslice::tests
