// SPDX-License-Identifier: Apache-2.0
// Recording of a program's allocations and frees: each block's rows agree with each other, and a recording that can't
// go on ends.
#include "shim/process/recording.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/no_memory.h"
#include "tests/policy/rounds.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

/// A row without its thread and time: "allocate,0x200,100,0x0".
using Rows = std::vector<std::string>;

struct Scene {
    Scene() {
        char name[] = "/tmp/cuslice-test-XXXXXX";
        folder = mkdtemp(name);
        file = folder + "/rows.csv";
    }
    ~Scene() { std::filesystem::remove_all(folder); }
    void start() { recording->start(file, false, nullptr); }
    // The columns that RMM's log has, or all of them but the program.
    Rows rows(bool all_columns = false) const {
        std::ifstream in(file);
        Rows all;
        std::string line;
        std::getline(in, line);
        while (std::getline(in, line)) {
            if (line.empty())
                continue;  // mapped, and no row yet
            all.push_back(line.substr(line.find(',', line.find(',') + 1) + 1));
            for (int i = 0; i < (all_columns ? 1 : 4); i++)
                all.back().erase(all.back().rfind(','));
        }
        return all;
    }

    std::string folder, file;
    std::unique_ptr<Recording> recording = std::make_unique<Recording>();
};

}  // namespace

TEST_CASE("a recording that was not started writes nothing and knows no block") {
    Scene scene;
    scene.recording->allocated({512, 100, 1}, 0);
    scene.recording->refused(100, 0, 0);
    Recording::Block block{1, 2, 3};
    CHECK_FALSE(scene.recording->freed(512, 0, &block));
    CHECK(block.address == 1);
    CHECK(block.bytes == 2);
    PageVector<Recording::Block> blocks;
    scene.recording->context_ends(1, &blocks);
    CHECK(blocks.size() == 0);
    CHECK(scene.recording->failure() == nullptr);
    CHECK(scene.recording->begun() == nullptr);
    CHECK_FALSE(scene.recording->take_news());
    CHECK(std::filesystem::is_empty(scene.folder));
}

TEST_CASE("a file that can't be made ends the recording, which is told once, and no block is known from then on") {
    Scene scene;
    scene.file = scene.folder + "/none/rows.csv";
    scene.start();
    CHECK(scene.recording->failure() == nullptr);
    scene.recording->allocated({512, 100, 1}, 0);
    CHECK(scene.recording->take_news());
    CHECK_FALSE(scene.recording->take_news());
    const Reason* why = scene.recording->failure();
    REQUIRE(why);
    CHECK(std::string(why->view()).find(scene.file) != std::string::npos);
    CHECK(scene.recording->failure() == nullptr);
    CHECK(scene.recording->begun() == nullptr);
    Recording::Block block{1, 2, 3};
    CHECK_FALSE(scene.recording->freed(512, 0, &block));
    CHECK(block.address == 1);
}

TEST_CASE("without memory for a block's size the recording ends, and the rows before it stay") {
    Scene scene;
    scene.start();
    scene.recording->allocated({512, 100, 1}, 0);
    {
        const NoMemory none;
        // In each of the table's shards there is none yet, or there is room.
        for (uint64_t address = 1024; address < 1000 * 512; address += 512)
            scene.recording->allocated({address, 100, 1}, 0);
    }
    REQUIRE(scene.recording->failure());
    const Rows rows = scene.rows();
    REQUIRE_FALSE(rows.empty());
    CHECK(rows[0] == "allocate,0x200,100,0x0");
    scene.recording->allocated({1 << 20, 100, 1}, 0);
    scene.recording->refused(100, 0, 0);
    CHECK(scene.rows() == rows);
}

TEST_CASE("no file is made before there is a row, and then it is told once which one it is") {
    Scene scene;
    scene.start();
    CHECK(std::filesystem::is_empty(scene.folder));
    CHECK(scene.recording->begun() == nullptr);
    scene.recording->refused(77, 3, 0);
    CHECK(scene.recording->take_news());
    const trace::Path* path = scene.recording->begun();
    REQUIRE(path);
    CHECK(path->view() == scene.file);
    CHECK(scene.recording->begun() == nullptr);
    CHECK(scene.rows() == Rows{"allocate failure,0x0,77,0x3"});
}

TEST_CASE("a block's free has its size, to the byte, and the block can be allocated again by it") {
    const uint64_t bytes = GENERATE(uint64_t{1}, uint64_t{511}, uint64_t{512}, uint64_t{513}, (uint64_t{1} << 40) + 1,
                                    (uint64_t{1} << 44) - 1024 + 1);
    Scene scene;
    scene.start();
    scene.recording->allocated({512, bytes, 7}, 2);
    Recording::Block block;
    REQUIRE(scene.recording->freed(512, 5, &block));
    CHECK(block.address == 512);
    CHECK(block.bytes == bytes);
    CHECK(block.context == 7);
    scene.recording->allocated(block, 5);  // the driver has refused
    REQUIRE(scene.recording->freed(512, 5, &block));
    CHECK(block.bytes == bytes);
    const std::string size = std::to_string(bytes);
    CHECK(scene.rows() == Rows{"allocate,0x200," + size + ",0x2", "free,0x200," + size + ",0x5",
                               "allocate,0x200," + size + ",0x5", "free,0x200," + size + ",0x5"});
}

TEST_CASE("what isn't known is not freed, and what was freed isn't known") {
    Scene scene;
    scene.start();
    scene.recording->allocated({512, 100, 1}, 0);
    Recording::Block block{1, 2, 3};
    CHECK_FALSE(scene.recording->freed(1024, 0, &block));
    CHECK(block.address == 1);
    REQUIRE(scene.recording->freed(512, 0, &block));
    CHECK_FALSE(scene.recording->freed(512, 0, &block));
    CHECK(scene.rows().size() == 2);
}

TEST_CASE("what was at an address has been freed unseen, and has a row before the next block's") {
    Scene scene;
    scene.start();
    scene.recording->allocated({512, 100, 1}, 4);
    scene.recording->allocated({512, 200, 2}, 4);
    CHECK(scene.rows() == Rows{"allocate,0x200,100,0x4", "free,0x200,100,0x0", "allocate,0x200,200,0x4"});
    Recording::Block block;
    REQUIRE(scene.recording->freed(512, 0, &block));
    CHECK(block.bytes == 200);
    CHECK_FALSE(scene.recording->freed(512, 0, &block));
}

TEST_CASE("a context's end frees its blocks and no other's, and those that outlive contexts stay") {
    Scene scene;
    scene.start();
    for (uint64_t i = 1; i <= 300; i++)
        scene.recording->allocated({i * 512, i, static_cast<Contexts::Id>(i % 3)}, 0);
    PageVector<Recording::Block> blocks;
    scene.recording->context_ends(1, &blocks);
    CHECK(blocks.size() == 100);
    std::map<uint64_t, uint64_t> sizes;
    for (const Recording::Block& block : blocks) {
        CHECK(block.context == 1);
        sizes[block.address] = block.bytes;
    }
    for (uint64_t i = 1; i <= 300; i += 3)
        CHECK(sizes[i * 512] == i);
    blocks.release();
    CHECK(scene.rows().size() == 400);
    Recording::Block block;
    CHECK_FALSE(scene.recording->freed(512, 0, &block));
    CHECK(scene.recording->freed(2 * 512, 0, &block));
    CHECK(scene.recording->freed(3 * 512, 0, &block));
}

TEST_CASE("each row says what its GPU is and how much of it is held then, also those of frees") {
    static std::atomic<uint64_t> held;
    Scene scene;
    scene.recording->start(scene.file, false, [](int gpu, trace::Row& row) {
        row.gpu = gpu == 0 ? "GPU-0a" : gpu == 63 ? "GPU-63" : "?";
        if (gpu == 63)
            return;
        row.limit = 4096;
        row.held = held++;
    });
    held = 700;
    scene.recording->allocated({512, 1, 7, 0}, 0);
    scene.recording->allocated({1024, 2, 0, 0}, 0);  // no context's end frees these two
    scene.recording->allocated({1536, 3, 0, 63}, 0);
    scene.recording->allocated({2048, 4, 8, 63}, 0);
    scene.recording->allocated({2560, 5, 0, Recording::kNoGpu}, 0);
    scene.recording->refused(6, 0, 0);
    scene.recording->refused(7, 0, Recording::kNoGpu);
    Recording::Block block;
    for (uint64_t address = 1024; address <= 2560; address += 512) {
        REQUIRE(scene.recording->freed(address, 0, &block));
        CHECK(block.gpu == (address == 1024 ? 0 : address == 2560 ? Recording::kNoGpu : 63));
        CHECK(block.context == (address == 2048 ? 8 : 0));
    }
    PageVector<Recording::Block> blocks;
    scene.recording->context_ends(0xffff, &blocks);  // a number that stands for a GPU: nothing is its own
    CHECK(blocks.size() == 0);
    scene.recording->context_ends(7, &blocks);
    REQUIRE(blocks.size() == 1);
    CHECK(blocks.begin()->gpu == 0);
    blocks.release();
    CHECK(scene.rows(true) == Rows{"allocate,0x200,1,0x0,GPU-0a,4096,700", "allocate,0x400,2,0x0,GPU-0a,4096,701",
                                   "allocate,0x600,3,0x0,GPU-63,,", "allocate,0x800,4,0x0,GPU-63,,",
                                   "allocate,0xa00,5,0x0,,,", "allocate failure,0x0,6,0x0,GPU-0a,4096,702",
                                   "allocate failure,0x0,7,0x0,,,", "free,0x400,2,0x0,GPU-0a,4096,703",
                                   "free,0x600,3,0x0,GPU-63,,", "free,0x800,4,0x0,GPU-63,,", "free,0xa00,5,0x0,,,",
                                   "free,0x200,1,0x0,GPU-0a,4096,704"});
}

TEST_CASE("in a forked child nothing is written any more, and the parent goes on") {
    Scene scene;
    scene.start();
    scene.recording->allocated({512, 100, 1}, 0);
    const pid_t child = fork();
    if (child == 0) {
        scene.recording->forget();
        scene.recording->allocated({1024, 100, 1}, 0);
        Recording::Block block;
        _exit(scene.recording->freed(512, 0, &block) ? 1 : 0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    Recording::Block block;
    CHECK(scene.recording->freed(512, 0, &block));
    CHECK(scene.rows() == Rows{"allocate,0x200,100,0x0", "free,0x200,100,0x0"});
}

TEST_CASE("threads' rows are whole, and each block is freed once and after it was allocated") {
    Scene scene;
    scene.start();
    constexpr unsigned kThreads = 4;
    on_threads(kThreads, [&](unsigned t) {
        for (uint64_t i = 0; i < 300; i++) {
            const uint64_t address = (t * 16 + i % 16 + 1) * 512;
            scene.recording->allocated({address, i + 1, 1}, 0);
            Recording::Block block;
            scene.recording->freed(address, 0, &block);
        }
    });
    const Rows rows = scene.rows();
    CHECK(rows.size() == kThreads * 600);
    std::map<std::string, std::string> live;  // address → size
    unsigned wrong = 0;
    for (const std::string& row : rows) {
        std::istringstream words(row);
        std::string action, address, size, stream;
        std::getline(words, action, ',');
        std::getline(words, address, ',');
        std::getline(words, size, ',');
        std::getline(words, stream);
        if (stream != "0x0")
            wrong++;
        if (action == "allocate" ? !live.emplace(address, size).second : live[address] != size)
            wrong++;
        if (action == "free")
            live.erase(address);
    }
    CHECK(wrong == 0);
    CHECK(live.empty());
}
