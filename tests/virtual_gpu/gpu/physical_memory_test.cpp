// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/physical_memory.h"

#include <map>
#include <random>
#include <utility>
#include <vector>

#include "tests/catch.h"

using cuslice::PhysicalMemory;

namespace {

std::vector<std::pair<int, uint64_t>> freed;
const PhysicalMemory::OnFreed note{
    [](void*, int gpu, uint64_t bytes, PhysicalMemory::Kept) { freed.emplace_back(gpu, bytes); }};

using Kept = PhysicalMemory::Kept;

struct Books : PhysicalMemory {
    Books() { freed.clear(); }
    /// By what the memory may be kept that the release of this handle ends.
    Kept kept_by(Handle handle) {
        Kept by = Kept::by_nobody;
        const auto note_kept = [](void* self, int, uint64_t, Kept kept) { *static_cast<Kept*>(self) = kept; };
        release_done(release(handle), {note_kept, &by});
        return by;
    }
    void drop(Handle handle) { release_done(release(handle), note); }
    void undo(CUdeviceptr address, uint64_t bytes) {
        Unmapping gone;
        unmap(address, bytes, &gone);
        unmap_done(&gone, note);
    }
};

constexpr uint64_t kPage = 2 << 20;

}  // namespace

TEST_CASE("memory ends with its last handle and its last mapping, in either order") {
    Books books;
    REQUIRE(books.created(7, kPage, 1));
    SECTION("released while mapped") {
        REQUIRE(books.mapped(0x1000000, kPage, 7));
        books.drop(7);
        CHECK(freed.empty());
        books.undo(0x1000000, kPage);
    }
    SECTION("unmapped while held") {
        REQUIRE(books.mapped(0x1000000, kPage, 7));
        books.undo(0x1000000, kPage);
        CHECK(freed.empty());
        books.drop(7);
    }
    SECTION("held twice") {
        books.retained(7);
        books.drop(7);
        CHECK(freed.empty());
        books.drop(7);
    }
    SECTION("mapped twice") {
        REQUIRE(books.mapped(0x1000000, kPage, 7));
        REQUIRE(books.mapped(0x9000000, kPage, 7));
        books.drop(7);
        books.undo(0x9000000, kPage);
        CHECK(freed.empty());
        books.undo(0x1000000, kPage);
    }
    CHECK(freed == std::vector<std::pair<int, uint64_t>>{{1, kPage}});
}

TEST_CASE("one unmapping undoes all mappings in its range and no other") {
    Books books;
    for (uint64_t i = 0; i < 4; i++) {
        REQUIRE(books.created(10 + i, kPage, 0));
        REQUIRE(books.mapped(0x10000000 + i * kPage, kPage, 10 + i));
        books.drop(10 + i);
    }
    books.undo(0x10000000 + kPage, 2 * kPage);
    CHECK(freed.size() == 2);
    books.undo(0x10000000, 4 * kPage);
    CHECK(freed.size() == 4);
}

TEST_CASE("what the driver refused did not happen") {
    Books books;
    REQUIRE(books.created(7, kPage, 0));
    REQUIRE(books.mapped(0x1000000, kPage, 7));
    books.release_failed(books.release(7));
    PhysicalMemory::Unmapping gone;
    books.unmap(0x1000000, kPage, &gone);
    books.unmap_failed(&gone);
    books.undo(0x1000000, kPage);
    CHECK(freed.empty());
    books.drop(7);
    CHECK(freed.size() == 1);
}

TEST_CASE("what is bound to a multicast object lives until it is unbound or the object ends") {
    Books books;
    const uint64_t object = 50, at = 4 * kPage;
    REQUIRE(books.created_object(object));
    REQUIRE(books.created(7, kPage, 1));
    REQUIRE(books.created(8, kPage, 0));
    REQUIRE(books.mapped(0x1000000, kPage, 7));
    SECTION("unbound") {
        REQUIRE(books.bound(object, at, kPage, 7));
        books.drop(7);
        books.undo(0x1000000, kPage);
        CHECK(freed.empty());
        CHECK_FALSE(books.unbind(object, 0, at).noted);  // bound there is another GPU's
        CHECK_FALSE(books.unbind(object, 1, 0).noted);
        books.unbind_failed(books.unbind(object, 1, at));
        CHECK(freed.empty());
        books.unbind_done(books.unbind(object, 1, at), note);
        books.drop(object);
    }
    SECTION("bound by an address") {
        CHECK(books.bound_at(object, at, kPage, 0x1000000 - 1));
        CHECK(books.bound_at(object, at, kPage, 0x1000000 + kPage));
        CHECK_FALSE(books.unbind(object, 1, at).noted);
        REQUIRE(books.bound_at(object, at, kPage / 2, 0x1000000 + kPage / 2));
        books.drop(7);
        books.undo(0x1000000, kPage);
        CHECK(freed.empty());
        books.drop(object);
    }
    SECTION("the object is released while it is mapped") {
        REQUIRE(books.bound(object, at, kPage, 7));
        REQUIRE(books.mapped(0x9000000, 8 * kPage, object));
        books.drop(7);
        books.undo(0x1000000, kPage);
        books.drop(object);
        CHECK(freed.empty());
        books.undo(0x9000000, 8 * kPage);
    }
    CHECK(freed == std::vector<std::pair<int, uint64_t>>{{1, kPage}});
    books.drop(8);
    CHECK(freed.size() == 2);
}

TEST_CASE("what is bound to another process's multicast object may be kept elsewhere") {
    Books books;
    REQUIRE(books.created(7, kPage, 1));
    REQUIRE(books.bound(99, 0, kPage, 7));
    CHECK(books.kept_by(7) == Kept::by_array);
}

TEST_CASE("exported memory that may end is announced with the GPU that it is on, before the driver is asked") {
    Books books;
    REQUIRE(books.created(7, kPage, 5));
    REQUIRE(books.created(8, kPage, 0));
    books.kept_elsewhere(7, Kept::exported);
    books.kept_elsewhere(7, Kept::by_array);  // it is exported all the same
    SECTION("by a release, however it is mapped") {
        books.retained(7);
        CHECK(books.release(7).exported == 0);
        REQUIRE(books.mapped(0x1000000, kPage, 7));
        const PhysicalMemory::Change last = books.release(7);
        CHECK(last.exported == 1u << 5);
        books.release_done(last, note);
        CHECK(freed.empty());
        PhysicalMemory::Unmapping gone;
        books.unmap(0x1000000, kPage, &gone);
        CHECK(gone.exported == 1u << 5);
        books.unmap_done(&gone, note);
        CHECK(freed.size() == 1);
    }
    SECTION("by an unmapping, but not while there are handles") {
        REQUIRE(books.mapped(0x1000000, kPage, 7));
        PhysicalMemory::Unmapping gone;
        books.unmap(0x1000000, kPage, &gone);
        CHECK(gone.exported == 0);
        books.unmap_done(&gone, note);
        CHECK(books.kept_by(7) == Kept::exported);
    }
    SECTION("by the end of what it is bound to") {
        REQUIRE(books.created_object(50));
        REQUIRE(books.bound(50, 0, kPage, 7));
        REQUIRE(books.bound(50, 0, kPage, 8));
        SECTION("the object's release") {
            books.drop(7);
            CHECK(freed.empty());
            CHECK(books.kept_by(50) == Kept::exported);
        }
        SECTION("an unbinding") {
            CHECK(books.release(7).exported == 1u << 5);
            const PhysicalMemory::Unbinding binding = books.unbind(50, 5, 0);
            CHECK(binding.exported == 1u << 5);
            books.unbind_done(binding, note);
            CHECK(freed.size() == 1);
        }
        SECTION("both are announced for the object") {
            books.kept_elsewhere(8, Kept::exported);
            CHECK(books.release(50).exported == ((1u << 5) | 1));
        }
    }
    SECTION("and nothing is of memory that wasn't") { CHECK(books.release(8).exported == 0); }
}

TEST_CASE("memory that was not noted is passed over") {
    Books books;
    books.retained(99);
    CHECK(books.mapped(0x1000000, kPage, 99));
    books.undo(0x1000000, kPage);
    books.drop(99);
    CHECK(freed.empty());
}

TEST_CASE("random programs agree with a model") {
    std::mt19937_64 random(20261121);
    Books books;
    struct Allocation {
        int handles = 1, mappings = 0;
    };
    std::map<uint64_t, Allocation> model;
    std::map<uint64_t, uint64_t> mappings;  // address → handle
    uint64_t next = 1;
    size_t ended = 0;
    const auto end_if_unused = [&](uint64_t handle) {
        if (model[handle].handles || model[handle].mappings)
            return;
        model.erase(handle);
        ended++;
    };
    for (int i = 0; i < 100'000; i++) {
        const auto any = [&] { return std::next(model.begin(), static_cast<long>(random() % model.size()))->first; };
        switch (model.size() < 3 ? 0 : random() % 5) {
            case 0:
                if (model.size() > 200)
                    break;
                REQUIRE(books.created(next, kPage, 3));
                model[next++] = {};
                break;
            case 1: {
                const uint64_t handle = any();
                if (!model[handle].handles)
                    break;
                books.retained(handle);
                model[handle].handles++;
                break;
            }
            case 2: {
                const uint64_t handle = any();
                if (!model[handle].handles)
                    break;
                books.drop(handle);
                model[handle].handles--;
                end_if_unused(handle);
                break;
            }
            case 3: {
                const uint64_t handle = any(), address = (1 + random() % 500) * kPage;
                if (mappings.contains(address))
                    break;
                REQUIRE(books.mapped(address, kPage, handle));
                mappings[address] = handle;
                model[handle].mappings++;
                break;
            }
            default: {
                if (mappings.empty())
                    break;
                const auto it = std::next(mappings.begin(), static_cast<long>(random() % mappings.size()));
                const uint64_t handle = it->second;
                books.undo(it->first, kPage);
                mappings.erase(it);
                model[handle].mappings--;
                end_if_unused(handle);
            }
        }
        REQUIRE(freed.size() == ended);
    }
}
