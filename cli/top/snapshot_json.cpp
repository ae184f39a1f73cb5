// SPDX-License-Identifier: Apache-2.0
// A snapshot as JSON, and back.
#include <algorithm>
#include <exception>

#include "cli/text/command_line.h"
#include "cli/text/read_json.h"
#include "cli/top/snapshot.h"
#include "config/uuid/fake.h"

namespace cuslice::cli::top {
namespace {

constexpr unsigned kVersion = 1;

// Earlier ones have none.
std::vector<std::string> command_line_in(const Json& row) {
    const auto words = row.find("command_line");
    return words == row.end() ? std::vector<std::string>() : read_words(*words);
}

// A row's GPU, and what its `index` and `partition` say of that.
std::string place_in(const Json& row, Snapshot& snapshot) {
    std::string uuid = read_text(row.at("gpu"));
    if (row.at("index").is_null())
        return uuid;
    Place place{read_small_number<int>(row.at("index")), {}};
    if (!row.at("partition").is_null())
        place.partition = read_small_number<int>(row.at("partition"));
    snapshot.places[uuid] = place;
    return uuid;
}

unsigned user_in(const Json& row, Snapshot& snapshot) {
    const auto user = read_small_number<unsigned>(row.at("uid"));
    snapshot.users[user] = read_text(row.at("user"));
    return user;
}

// Earlier ones have none.
template <typename Number>
void read_if_there(const Json& row, const char* key, std::optional<Number>& number) {
    const auto value = row.find(key);
    if (value != row.end() && !value->is_null())
        number = read_small_number<Number>(*value);
}

Sensors sensors_in(const Json& row) {
    Sensors sensors;
    read_if_there(row, "busy_percent", sensors.busy);
    read_if_there(row, "temperature", sensors.temperature);
    read_if_there(row, "power", sensors.power);
    read_if_there(row, "power_limit", sensors.most_power);
    return sensors;
}

template <typename Number>
Json number_or_null(const std::optional<Number>& number) {
    return number ? Json(*number) : Json();
}

void add_gpu(const Json& row, Snapshot& snapshot) {
    GpuLoad load;
    load.gpu.ordinal = row.at("index").is_null() ? -1 : read_small_number<int>(row.at("index"));
    load.gpu.name = read_text(row.at("name"));
    load.gpu.uuid = read_text(row.at("uuid"));
    load.gpu.pci = read_text(row.at("pci"));
    load.gpu.total = read_number(row.at("total"));
    if (const auto used = read_number_or_null(row.at("used")))
        load.gpu.free = load.gpu.total - std::min(load.gpu.total, *used);
    load.gpu.sensors = sensors_in(row);
    load.limit = read_number_or_null(row.at("limit"));
    if (load.limit)
        load.origin = read_text(row.at("origin"));
    if (load.gpu.ordinal >= 0)
        snapshot.places[load.gpu.uuid] = {load.gpu.ordinal, {}};
    snapshot.beyond[load.gpu.uuid] = read_number(row.at("reserved_beyond_use"));
    snapshot.gpus.push_back(std::move(load));
}

void add_process(const Json& row, Snapshot& snapshot) {
    place_in(row, snapshot);
    user_in(row, snapshot);
    snapshot.holders.holding.push_back(read_holder(row));
}

void add_waiting(const Json& row, Snapshot& snapshot) {
    WaitingProcess one;
    one.gpu = place_in(row, snapshot);
    one.position = read_small_number<unsigned>(row.at("position"));
    one.waiter.user = user_in(row, snapshot);
    one.waiter.pid = read_small_number<int>(row.at("pid"));
    read_text(row.at("command")).copy(one.waiter.command, sizeof one.waiter.command - 1);
    one.command_line = command_line_in(row);
    one.waiter.bytes = read_number(row.at("bytes"));
    one.waiter.since = read_time_ago(row.at("seconds"));
    one.past = read_small_number<unsigned>(row.at("passed"));
    snapshot.holders.waiting.push_back(one);
}

void add_time(const Json& row, Snapshot& snapshot) {
    place_in(row, snapshot);
    user_in(row, snapshot);
    snapshot.holders.times.push_back(read_job_time(row));
}

// Reads the fields that a frame shows.
void add_cache(const Json& row, Snapshot& snapshot) {
    Cache cache;
    cache.pid = read_small_number<int>(row.at("pid"));
    cache.command = read_text(row.at("command"));
    cache.command_line = command_line_in(row);
    cache.stats.uuid = place_in(row, snapshot);
    cache.stats.name = read_text(row.at("name"));
    cache.stats.mode = mode_called(read_text(row.at("allocator")));
    cache.stats.statistics.allocated.current = read_number(row.at("allocated").at("current"));
    cache.stats.statistics.reserved.current = read_number(row.at("reserved").at("current"));
    cache.stats.statistics.reserved.peak = read_number(row.at("reserved").at("peak"));
    snapshot.caches.push_back(std::move(cache));
}

}  // namespace

Json json_of(const Snapshot& snapshot) {
    Json gpus = Json::array(), processes = Json::array(), waiting = Json::array(), caches = Json::array();
    Json times = Json::array();
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
                        {"busy_percent", number_or_null(gpu.sensors.busy)},
                        {"temperature", number_or_null(gpu.sensors.temperature)},
                        {"power", number_or_null(gpu.sensors.power)},
                        {"power_limit", number_or_null(gpu.sensors.most_power)},
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
    for (const JobTime& job : snapshot.holders.times) {
        Json row = cli::json_of(job);
        add_place(row, job.gpu);
        times.push_back(row);
    }
    const std::string failure = snapshot.gpus_known ? snapshot.gpus_failure : "the GPUs have not answered yet";
    return {{"version", kVersion},
            {"gpus", gpus},
            {"processes", processes},
            {"waiting", waiting},
            {"caches", caches},
            {"times", times},
            {"gpus_failure", failure.empty() ? Json() : Json(failure)},
            {"failures", snapshot.holders.failures}};
}

std::string json_line(const Json& document) {
    return document.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

std::optional<Snapshot> parse_snapshot(const Json& document) {
    Snapshot snapshot;
    try {
        if (read_number(document.at("version")) != kVersion)
            return {};
        for (const Json& row : read_list(document.at("gpus")))
            add_gpu(row, snapshot);
        for (const Json& row : read_list(document.at("processes")))
            add_process(row, snapshot);
        for (const Json& row : read_list(document.at("waiting")))
            add_waiting(row, snapshot);
        for (const Json& row : read_list(document.at("caches")))
            add_cache(row, snapshot);
        // Earlier ones have none.
        if (document.contains("times"))
            for (const Json& row : read_list(document.at("times")))
                add_time(row, snapshot);
        // Earlier ones say it on stderr alone.
        if (document.contains("failures"))
            for (const Json& text : read_list(document.at("failures")))
                snapshot.holders.failures.push_back(text.get<std::string>().substr(0, 256));
        if (document.contains("gpus_failure") && !document.at("gpus_failure").is_null())
            snapshot.gpus_failure = read_text(document.at("gpus_failure"));
        else if (snapshot.gpus.empty())
            snapshot.gpus_failure = "the answer has none";
    } catch (const std::exception&) {
        return {};
    }
    return snapshot;
}

}  // namespace cuslice::cli::top
