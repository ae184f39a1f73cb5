// SPDX-License-Identifier: Apache-2.0
#include "cli/top/nodes.h"

#include <unistd.h>

#include <algorithm>

#include "cli/top/view.h"
#include "config/printable.h"

namespace cuslice::cli::top {

void Nodes::look() {
    for (NodeWatch& node : nodes_)
        node.ask();
    clock_ = time_of_day();
}

void Nodes::add_descriptors(std::vector<pollfd>& descriptors) const {
    for (const NodeWatch& node : nodes_)
        node.add_descriptors(descriptors);
}

bool Nodes::take() {
    bool news = false;
    for (NodeWatch& node : nodes_)
        news = node.take() || news;
    return news;
}

uint64_t Nodes::patience() const {
    uint64_t least = Source::patience();
    for (const NodeWatch& node : nodes_)
        least = std::min(least, node.patience());
    return least;
}

Lines Nodes::draw(const Look& look, const Choice& choice) const {
    std::vector<NodeView> views;
    for (const NodeWatch& node : nodes_)
        views.push_back({node.name(), node.latest(), node.failure(), node.overdue() / 1000});
    return draw_nodes(views, clock_, look, choice);
}

void Nodes::stop() {
    constexpr int kTries = 200;
    for (NodeWatch& node : nodes_)
        node.terminate();
    const auto ended = [&] {
        bool all = true;
        for (NodeWatch& node : nodes_)
            all = node.reap() && all;
        return all;
    };
    for (int i = 0; i < kTries && !ended(); ++i)
        ::usleep(10'000);
    for (NodeWatch& node : nodes_)
        node.kill();
}

void Nodes::ask_once(const Signals& signals) {
    look();
    clock_.clear();
    const auto running = [&] {
        return std::any_of(nodes_.begin(), nodes_.end(), [](const NodeWatch& node) { return node.running(); });
    };
    while (running()) {
        std::vector<pollfd> ready = {{signals.descriptor(), POLLIN, 0}};
        add_descriptors(ready);
        ::poll(ready.data(), ready.size(), static_cast<int>(patience()));
        while (const int signal = signals.take()) {
            if (signal == SIGWINCH || signal == SIGCONT)
                continue;
            if (signal != SIGTSTP)
                stop();
            Signals::let(signal);
        }
        take();
    }
}

Json Nodes::document() const {
    Json nodes = Json::array();
    for (const NodeWatch& node : nodes_) {
        Json row = {{"node", node.name()}, {"failure", Json()}};
        if (node.latest() == nullptr)
            row["failure"] = node.failure();
        for (const char* const list : {"gpus", "processes", "waiting", "caches", "failures"})
            row[list] = node.document().is_object() ? node.document().value(list, Json::array()) : Json::array();
        row["gpus_failure"] = Json();
        if (node.latest() != nullptr && !node.latest()->gpus_failure.empty())
            row["gpus_failure"] = node.latest()->gpus_failure;
        nodes.push_back(row);
    }
    return {{"version", 1}, {"nodes", nodes}};
}

std::vector<std::string> Nodes::failures() const {
    std::vector<std::string> texts;
    for (const NodeWatch& node : nodes_) {
        const bool answered = node.latest() != nullptr;
        const std::string why = answered ? node.latest()->gpus_failure : node.failure();
        if (!answered || !why.empty()) {
            texts.push_back(node.name() + ": " + (answered ? "no GPU can be listed: " : ""));
            append_printable(texts.back(), why);
        }
    }
    return texts;
}

}  // namespace cuslice::cli::top
