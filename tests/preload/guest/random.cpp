// SPDX-License-Identifier: Apache-2.0
// Random programs: so many calls of every kind that takes memory or gives it back, in an order that a number decides.
#include <cstdint>
#include <memory>
#include <random>

#include "tests/preload/guest/guest.h"

namespace guest {
namespace {

// Small words, so that a program has some of each kind and frees them too.
class RandomProgram {
  public:
    RandomProgram(Program& program, uint64_t seed, bool managed) : p_(program), random_(seed), managed_(managed) {}

    // Calls that go wrong are part of it: what is refused, or freed twice.
    void step() {
        const std::string name = "r" + std::to_string(below(12));
        switch (below(16)) {
            case 0:
            case 1:
            case 2:
                return allocate(name, managed_ && below(2) ? "managed" : "plain");
            case 3:
                return allocate(name, below(2) ? "async" : "ptsz");
            case 4:
                return allocate(name, "pitch");
            case 5:
                return allocate(name, "old");
            case 6:
            case 7:
            case 8:
                return free(name);
            case 9:
                return physical(name);
            case 10:
                return below(3) ? mapping(name) : binding(name);
            case 11:
                return managed_ ? free(name) : below(3) == 0 ? green(name) : below(2) ? array(name) : mipmap(name);
            case 12:
                return managed_ ? free(name) : graph(name);
            case 13:
                return pool();
            case 14:
                run("sync", {});
                return;
            default:
                if (!managed_)
                    run(below(2) ? "graphtrim" : "sync", {});
        }
    }

    // Everything that it has left behind.
    void end() {
        while (!p_.graphs.empty())
            drop_graph(p_.graphs.begin()->first);
        while (!p_.mappings.empty())
            unmap(p_.mappings.begin()->first);
        while (!p_.pieces.empty())
            unpiece(p_.pieces.begin()->first);
        while (!p_.greens.empty())
            green(p_.greens.begin()->first);
        while (!p_.arrays.empty())
            drop_array(p_.arrays.begin()->first);
        while (!p_.mipmaps.empty())
            drop_mipmap(p_.mipmaps.begin()->first);
        while (!p_.blocks.empty())
            free(p_.blocks.begin()->first);
        run("sync", {});
        run("graphtrim", {});
        trim();
    }

  private:
    size_t below(size_t end) { return random_() % end; }
    // From a byte to some hundred MiB, and now and then more than there is.
    size_t size() {
        const size_t bits = below(29);
        return below(50) == 0 ? size_t{1} << 32 : (size_t{1} << bits) + below(size_t{1} << bits);
    }
    bool run(const std::string& command, Words words) {
        words.insert(words.begin(), command);
        return execute(p_, words).rfind("0", 0) == 0;
    }
    void allocate(const std::string& name, const std::string& how) {
        if (p_.blocks.count(name))
            free(name);
        const size_t bytes = how == "pitch" ? below(100000) + 1 : how == "old" ? below(100000) + 1 : size();
        run("alloc", {name, std::to_string(bytes), how});
        if (p_.blocks.count(name))
            how_[name] = how;
    }
    void free(const std::string& name) {
        if (!p_.blocks.count(name))
            return;
        const std::string& how = how_[name];
        const bool pooled = how == "async" || how == "ptsz";
        run(how == "old" ? "freeold" : pooled && below(2) ? "freeasync" : "free", {name});
        p_.blocks.erase(name);
    }
    void physical(const std::string& name) {
        if (p_.pieces.count(name))
            return unpiece(name);
        if (p_.mappings.count(name))
            return unmap(name);
        pieces_[name] = (below(30) + 1) << 21;
        Words words{name, std::to_string(pieces_[name])};
        if (below(3) == 0)
            words.push_back("export");
        const bool exports = words.size() > 2 && below(2) == 0;
        if (run("piece", words) && exports)
            run("export", {name, "close"});
    }
    void mapping(const std::string& name) {
        if (p_.mappings.count(name))
            return unmap(name);
        if (p_.pieces.count(name))
            run("map", {name, std::to_string(pieces_[name])});
    }
    // One object for them all, at a place of its own for each; memory that is unbound when its object goes, if not
    // before.
    void binding(const std::string& name) {
        const std::string place = std::to_string(std::stoul(name.substr(1)) << 26);
        if (below(4) == 0 && p_.pieces.count("object"))
            return unpiece("object");
        if (!p_.pieces.count("object"))
            run("multicast", {"object", std::to_string(size_t{12} << 26)});
        if (pieces_.count(name) && below(4) == 0)
            run("unbind", {"object", place, std::to_string(pieces_[name])});
        if (p_.pieces.count(name))
            run("bind", {"object", place, name, std::to_string(pieces_[name])});
    }
    void unmap(const std::string& name) {
        run("unmap", {name});
        p_.mappings.erase(name);
    }
    void unpiece(const std::string& name) {
        run("unpiece", {name});
        p_.pieces.erase(name);
    }
    // A green context comes or goes, and now and then what follows happens in it.
    void green(const std::string& name) {
        if (!p_.greens.count(name)) {
            if (run("green", {name, "0"}) && below(2))
                run("current", {name});
            return;
        }
        run("current", {"0"});
        run("ungreen", {name});
        p_.greens.erase(name);
    }
    void array(const std::string& name) {
        if (p_.arrays.count(name))
            return drop_array(name);
        run("array",
            {name, std::to_string(below(500) + 1), std::to_string(below(500) + 1), std::to_string(below(8) + 1)});
    }
    void drop_array(const std::string& name) {
        run("unarray", {name});
        p_.arrays.erase(name);
    }
    void mipmap(const std::string& name) {
        if (p_.mipmaps.count(name))
            return drop_mipmap(name);
        run("mipmap",
            {name, std::to_string(below(1000) + 1), std::to_string(below(1000)), "0", std::to_string(below(12))});
    }
    void drop_mipmap(const std::string& name) {
        run("unmipmap", {name});
        p_.mipmaps.erase(name);
    }
    void graph(const std::string& name) {
        if (!p_.graphs.count(name)) {
            const Words words{name, std::to_string(size() / 4 + 1), std::to_string(below(4) + 1),
                              below(2) ? "free" : "leave"};
            run("graph", words);
            return;
        }
        if (below(4) == 0)
            return drop_graph(name);
        run(below(4) == 0 ? "upload" : "launch", {name});
        if (below(2))
            run("graphfree", {name});
    }
    void drop_graph(const std::string& name) {
        run("graphfree", {name});
        run("ungraph", {name});
        p_.graphs.erase(name);
    }
    void pool() {
        if (below(2))
            return trim();
        run("pool", {"default", "0"});
        run("keep", {"default", std::to_string(below(2) ? 0 : size_t{256} << 20)});
    }
    void trim() {
        run("pool", {"default", "0"});
        run("trim", {"default", "0"});
    }

    Program& p_;
    std::mt19937_64 random_;
    bool managed_;
    std::map<std::string, std::string> how_;
    std::map<std::string, size_t> pieces_;
};

std::unique_ptr<RandomProgram>& running() {
    static std::unique_ptr<RandomProgram> one;
    return one;
}

}  // namespace

void add_random_commands(Commands& commands) {
    // random SEED managed|arrays: begins a program; there is one at a time
    commands["random"] = [](Program& p, const Words& w) {
        running() = std::make_unique<RandomProgram>(p, number(w.at(0)), w.at(1) == "managed");
        return answer(CUDA_SUCCESS);
    };
    // steps COUNT
    commands["steps"] = [](Program&, const Words& w) {
        for (size_t i = number(w.at(0)); i > 0; --i)
            running()->step();
        return answer(CUDA_SUCCESS);
    };
    commands["finish"] = [](Program&, const Words&) {
        running()->end();
        return answer(CUDA_SUCCESS);
    };
}

}  // namespace guest
