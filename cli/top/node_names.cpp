// SPDX-License-Identifier: Apache-2.0
#include "cli/top/node_names.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace cuslice::cli::top {
namespace {

bool is_made_of(std::string_view word, std::string_view marks) {
    return !word.empty() && std::all_of(word.begin(), word.end(), [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               marks.find(c) != marks.npos;
    });
}

// A user's name may stand before the machine's, and neither is to look like an option.
bool is_node(std::string_view name) {
    return is_made_of(name, "_.:@%-") && name[0] != '-' && name.find("@-") == name.npos;
}

bool parse_number(std::string_view text, unsigned& number) {
    constexpr size_t kDigits = 9;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    return failure == std::errc() && end == text.data() + text.size() && text.size() <= kDigits;
}

class List {
  public:
    List(std::vector<std::string>& nodes, std::string& error) : nodes_(nodes), error_(error) {}

    bool refuse(std::string_view what, const char* why) {
        error_.assign(what).append(": ").append(why);
        return false;
    }

    // One of the list, whose brackets are replaced from the left to the right.
    bool add(const std::string& before, std::string_view rest) {
        const size_t open = rest.find('[');
        if (open == rest.npos) {
            const std::string name = before + std::string(rest);
            if (!is_node(name))
                return refuse(name,
                              "not the name of a node, which has letters, digits and _.:@%-, and doesn't begin with -");
            if (std::find(nodes_.begin(), nodes_.end(), name) != nodes_.end())
                return true;
            nodes_.push_back(name);
            return nodes_.size() <= kMaxNodes || refuse("more than 256 nodes", "these can't all be asked at once");
        }
        const size_t close = rest.find(']', open);
        if (close == rest.npos)
            return refuse(rest, "a bracket is not closed");
        const std::string stem = before + std::string(rest.substr(0, open));
        std::string_view ranges = rest.substr(open + 1, close - open - 1);
        for (bool more = true; more;) {
            const size_t comma = ranges.find(',');
            if (!add_range(stem, ranges.substr(0, comma), rest.substr(close + 1)))
                return false;
            more = comma != ranges.npos;
            if (more)
                ranges.remove_prefix(comma + 1);
        }
        return true;
    }

  private:
    // "01-04" or "7".
    bool add_range(const std::string& stem, std::string_view range, std::string_view rest) {
        const size_t dash = range.find('-');
        const std::string_view from = range.substr(0, dash), to = dash == range.npos ? from : range.substr(dash + 1);
        unsigned first = 0, last = 0;
        if (!parse_number(from, first) || !parse_number(to, last) || last < first)
            return refuse(range, "no numbers of nodes: n[1-3,7]");
        for (unsigned number = first; number <= last; ++number) {
            std::string digits = std::to_string(number);
            if (digits.size() < from.size())
                digits.insert(0, from.size() - digits.size(), '0');
            if (!add(stem + digits, rest))
                return false;
        }
        return true;
    }

    std::vector<std::string>& nodes_;
    std::string& error_;
};

}  // namespace

bool parse_nodes(std::string_view list, std::vector<std::string>& nodes, std::string& error) {
    List parser(nodes, error);
    int depth = 0;
    for (size_t begin = 0, at = 0; at <= list.size(); ++at) {
        const char c = at < list.size() ? list[at] : ',';
        if (at == list.size())
            depth = 0;
        depth += c == '[' ? 1 : c == ']' ? -1 : 0;
        if (c != ',' || depth > 0)
            continue;
        const std::string_view one = list.substr(begin, at - begin);
        if (one.empty())
            return parser.refuse(list, "a name is missing");
        if (!parser.add({}, one))
            return false;
        begin = at + 1;
    }
    return true;
}

bool is_plain_word(std::string_view word) { return is_made_of(word, "_./:,@%+=-"); }

}  // namespace cuslice::cli::top
