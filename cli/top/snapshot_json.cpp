// A snapshot as JSON, and back.
#include <algorithm>
#include <climits>
#include <stdexcept>

#include "cli/text/command_line.h"
#include "cli/top/snapshot.h"
#include "config/uuid/fake.h"
#include "policy/base/kernel_clock.h"
#include "policy/ledger/accounts.h"

namespace cuslice::cli::top {
namespace {

constexpr unsigned kVersion = 1;

// These read the answer of another machine. Each throws if a value is not what is asked for.

std::uint64_t number_in(const Json& row, const char* key) {
    const Json& value = row.at(key);
    if (!value.is_number_unsigned()) throw std::invalid_argument(key);
    return value.get<std::uint64_t>();
}

std::optional<std::uint64_t> number_or_null(const Json& row, const char* key) {
    if (row.at(key).is_null()) return {};
    return number_in(row, key);
}

template <typename Number>
Number small_number_in(const Json& row, const char* key, Number most) {
    const std::uint64_t number = number_in(row, key);
    if (number > static_cast<std::uint64_t>(most)) throw std::out_of_range(key);
    return static_cast<Number>(number);
}

// None of ours is longer, and a frame has no room for one that is.
std::string text_in(const Json& row, const char* key) {
    constexpr std::size_t kMost = 256;
    return row.at(key).get_ref<const std::string&>().substr(0, kMost);
}

// Earlier ones have none. As much of it as is read of one's own processes.
std::vector<std::string> command_line_in(const Json& row) {
    constexpr std::size_t kMost = 4096;
    std::vector<std::string> words;
    const auto list = row.find("command_line");
    if (list == row.end() || list->is_null()) return words;
    if (!list->is_array()) throw std::invalid_argument("command_line");
    std::size_t left = kMost;
    for (const Json& word : *list) {
        if (left == 0) break;
        words.push_back(word.get_ref<const std::string&>().substr(0, left));
        left -= std::min(left, words.back().size() + 1);
    }
    return words;
}

const Json& list_in(const Json& document, const char* key) {
    const Json& list = document.at(key);
    if (!list.is_array()) throw std::invalid_argument(key);
    return list;
}

std::uint64_t ago(std::uint64_t seconds) {
    constexpr std::uint64_t kSecond = 1'000'000'000;  // nanoseconds
    const std::uint64_t now = now_realtime();
    return now - std::min(seconds, now / kSecond) * kSecond;
}

// A row's GPU, and what its `index` and `partition` say of that.
std::string place_in(const Json& row, Snapshot& snapshot) {
    const std::string uuid = text_in(row, "gpu");
    if (row.at("index").is_null()) return uuid;
    Place place{small_number_in(row, "index", INT_MAX), {}};
    if (!row.at("partition").is_null()) place.partition = small_number_in(row, "partition", INT_MAX);
    snapshot.places[uuid] = place;
    return uuid;
}

unsigned user_in(const Json& row, Snapshot& snapshot) {
    const auto user = small_number_in(row, "uid", UINT_MAX);
    snapshot.users[user] = text_in(row, "user");
    return user;
}

void add_gpu(const Json& row, Snapshot& snapshot) {
    GpuLoad load;
    load.gpu.ordinal = row.at("index").is_null() ? -1 : small_number_in(row, "index", INT_MAX);
    load.gpu.name = text_in(row, "name");
    load.gpu.uuid = text_in(row, "uuid");
    load.gpu.pci = text_in(row, "pci");
    load.gpu.total = number_in(row, "total");
    if (const auto used = number_or_null(row, "used")) load.gpu.free = load.gpu.total - std::min(load.gpu.total, *used);
    load.limit = number_or_null(row, "limit");
    if (load.limit) load.origin = text_in(row, "origin");
    if (load.gpu.ordinal >= 0) snapshot.places[load.gpu.uuid] = {load.gpu.ordinal, {}};
    snapshot.beyond[load.gpu.uuid] = number_in(row, "reserved_beyond_use");
    snapshot.gpus.push_back(std::move(load));
}

void add_process(const Json& row, Snapshot& snapshot) {
    Holder holder;
    holder.gpu = place_in(row, snapshot);
    holder.user = user_in(row, snapshot);
    holder.kind = text_in(row, "kind");
    holder.name = text_in(row, "name");
    holder.pid = small_number_in(row, "pid", INT_MAX);
    holder.command = text_in(row, "command");
    holder.command_line = command_line_in(row);
    holder.used = number_in(row, "used");
    holder.together = number_in(row, "together");
    holder.peak = number_in(row, "peak");
    holder.reserved = number_in(row, "reserved");
    holder.limit = number_or_null(row, "limit").value_or(ledger::kNoLimitBytes);
    holder.since = ago(number_in(row, "seconds"));
    holder.idle_seconds = number_in(row, "idle_seconds");
    snapshot.holders.holding.push_back(std::move(holder));
}

void add_waiting(const Json& row, Snapshot& snapshot) {
    WaitingProcess one;
    one.gpu = place_in(row, snapshot);
    one.position = small_number_in(row, "position", UINT_MAX);
    one.waiter.user = user_in(row, snapshot);
    one.waiter.pid = small_number_in(row, "pid", INT_MAX);
    text_in(row, "command").copy(one.waiter.command, sizeof one.waiter.command - 1);
    one.command_line = command_line_in(row);
    one.waiter.bytes = number_in(row, "bytes");
    one.waiter.since = ago(number_in(row, "seconds"));
    one.past = small_number_in(row, "passed", UINT_MAX);
    snapshot.holders.waiting.push_back(one);
}

// Reads the fields that a frame shows.
void add_cache(const Json& row, Snapshot& snapshot) {
    Cache cache;
    cache.pid = small_number_in(row, "pid", INT_MAX);
    cache.command = text_in(row, "command");
    cache.command_line = command_line_in(row);
    cache.stats.uuid = place_in(row, snapshot);
    cache.stats.name = text_in(row, "name");
    cache.stats.mode = mode_called(text_in(row, "allocator"));
    cache.stats.statistics.allocated.current = number_in(row.at("allocated"), "current");
    cache.stats.statistics.reserved.current = number_in(row.at("reserved"), "current");
    cache.stats.statistics.reserved.peak = number_in(row.at("reserved"), "peak");
    snapshot.caches.push_back(std::move(cache));
}

}  // namespace

Json json_of(const Snapshot& snapshot) {
    Json gpus = Json::array(), processes = Json::array(), waiting = Json::array(), caches = Json::array();
    const auto add_place = [&](Json& row, const std::string& uuid) {
        const auto found = snapshot.places.find(uuid);
        const bool known = found != snapshot.places.end();
        row["index"] = known ? Json(found->second.index) : Json();
        row["partition"] = known && found->second.partition ? Json(*found->second.partition) : Json();
    };
    for (const GpuLoad& load : snapshot.gpus) {
        const Gpu& gpu = load.gpu;
        gpus.push_back({{"index", gpu.ordinal < 0 ? Json() : Json(gpu.ordinal)},
                        {"name", gpu.name},
                        {"uuid", gpu.uuid},
                        {"fake", is_fake_uuid(gpu.uuid)},
                        {"pci", gpu.pci},
                        {"total", gpu.total},
                        {"used", gpu.free ? Json(gpu.total - std::min(gpu.total, *gpu.free)) : Json()},
                        {"reserved_beyond_use", snapshot.reserved_beyond_use(gpu.uuid)},
                        {"limit", load.limit ? Json(*load.limit) : Json()},
                        {"origin", load.limit ? Json(load.origin) : Json()}});
    }
    for (const Holder& holder : snapshot.holders.holding) {
        processes.push_back(cli::json_of(holder));
        add_place(processes.back(), holder.gpu);
    }
    for (const WaitingProcess& one : snapshot.holders.waiting) {
        waiting.push_back(cli::json_of(one));
        add_place(waiting.back(), one.gpu);
    }
    for (const Cache& cache : snapshot.caches) {
        Json row = {{"pid", cache.pid},
                    {"command", cache.command},
                    {"command_line", json_of_words(cache.command_line)},
                    {"fake", is_fake_uuid(cache.stats.uuid)}};
        row.update(cli::json_of(cache.stats));
        add_place(row, cache.stats.uuid);
        caches.push_back(row);
    }
    const std::string failure = snapshot.gpus_known ? snapshot.gpus_failure : "the GPUs have not answered yet";
    return {{"version", kVersion},
            {"gpus", gpus},
            {"processes", processes},
            {"waiting", waiting},
            {"caches", caches},
            {"gpus_failure", failure.empty() ? Json() : Json(failure)},
            {"failures", snapshot.holders.failures}};
}

std::string json_line(const Json& document) {
    return document.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

std::optional<Snapshot> parse_snapshot(const Json& document) {
    Snapshot snapshot;
    try {
        if (number_in(document, "version") != kVersion) return {};
        for (const Json& row : list_in(document, "gpus")) add_gpu(row, snapshot);
        for (const Json& row : list_in(document, "processes")) add_process(row, snapshot);
        for (const Json& row : list_in(document, "waiting")) add_waiting(row, snapshot);
        for (const Json& row : list_in(document, "caches")) add_cache(row, snapshot);
        // Earlier ones say it on stderr alone.
        if (document.contains("failures"))
            for (const Json& text : list_in(document, "failures"))
                snapshot.holders.failures.push_back(text.get<std::string>().substr(0, 256));
        if (document.contains("gpus_failure") && !document.at("gpus_failure").is_null())
            snapshot.gpus_failure = text_in(document, "gpus_failure");
        else if (snapshot.gpus.empty())
            snapshot.gpus_failure = "the answer has none";
    } catch (const std::exception&) {
        return {};
    }
    return snapshot;
}

}  // namespace cuslice::cli::top
