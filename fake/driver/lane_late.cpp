// Late work: queued in its lane, and run by whoever waits for it.
#include <algorithm>
#include <thread>

#include "fake/driver/lane.h"
#include "fake/driver/lanes.h"

namespace cuslice::fake {
namespace {

// More is never queued, in all lanes together: a GPU takes no more either, and a program that never waits must not fill
// the host's memory.
constexpr std::size_t kMaxQueued = 1024;
// The most that one look, or one submission too many, lets a lane get on.
constexpr std::uint64_t kMaxAtOnce = 16;

// With the lock held, all of these.
std::size_t queued = 0;
std::uint64_t random_state = 0;

/// Lanes with work that is not done, in no order.
std::vector<std::shared_ptr<Lane>>& busy() {
    static auto* all = new std::vector<std::shared_ptr<Lane>>;
    return *all;
}

std::uint64_t random_number() {
    random_state += 0x9e3779b97f4a7c15;
    std::uint64_t z = random_state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

}  // namespace

void Lane::be_late(std::uint64_t seed) {
    const std::lock_guard hold(lanes_lock);
    late_ = true;
    random_state = seed;
}

void Lane::enqueue_late(Item item, Hold& hold) {
    std::erase_if(item.after, [](const Mark& mark) { return mark.lane->completed_ >= mark.ticket; });
    const bool first = completed_ == submitted_;
    begun();
    if (first) {
        place_ = busy().size();
        busy().push_back(shared_from_this());
    }
    queue_.push_back(std::move(item));
    queued++;
    // Which lane gets on, and how far, is chance. One that can't, as its host function blocks, is passed over.
    for (std::size_t tries = 0; queued > kMaxQueued && tries < 64; tries++) {
        const std::uint64_t chance = random_number();
        const std::shared_ptr<Lane> lane = busy()[chance % busy().size()];
        for (std::uint64_t i = 0; i <= (chance >> 32) % kMaxAtOnce; i++)
            if (!advance(lane, hold, Host::aside)) break;
    }
}

void Lane::run_front(Hold& hold, Host host) {
    const std::shared_ptr<Lane> self = shared_from_this();
    Item item = std::move(queue_.front());
    queue_.pop_front();
    queued--;
    running_ = true;
    if (item.host && host == Host::aside) {
        std::thread([self, task = std::move(item.task)] {
            task();
            const std::lock_guard held(lanes_lock);
            self->finish_late();
        }).detach();
        return;
    }
    hold.unlock();
    item.task();
    item = {};
    hold.lock();
    finish_late();
}

void Lane::finish_late() {
    running_ = false;
    ended();
    if (completed_ == submitted_) {
        busy()[place_] = busy().back();
        busy()[place_]->place_ = place_;
        busy().pop_back();
    }
    progress().notify_all();
}

// The next piece of work that this lane needs: its own, or that of a lane which it waits for. False if another thread
// is at it.
bool Lane::advance(std::shared_ptr<Lane> lane, Hold& hold, Host host) {
    for (;;) {
        if (lane->queue_.empty() || lane->running_) return false;
        std::shared_ptr<Lane> before;
        for (const Mark& mark : lane->queue_.front().after)
            if (mark.lane->completed_ < mark.ticket) before = mark.lane;
        if (before == nullptr) break;
        lane = std::move(before);  // marks are made of what has been submitted: there is no way round in a circle
    }
    lane->run_front(hold, host);
    return true;
}

void Lane::wait_late(const Mark& mark, Hold& hold) {
    while (mark.lane->completed_ < mark.ticket)
        if (!advance(mark.lane, hold, Host::here)) progress().wait(hold);
}

void Lane::look(const Mark& mark) {
    Hold hold(lanes_lock);
    if (!late_ || mark.lane == nullptr || mark.lane->completed_ >= mark.ticket) return;
    const std::uint64_t chance = random_number();
    if (chance % 4 == 0) advance(busy().empty() ? mark.lane : busy()[(chance >> 8) % busy().size()], hold, Host::aside);
    if (chance % 2 == 0) return;
    for (std::uint64_t i = 0; i <= (chance >> 32) % kMaxAtOnce; i++)
        if (mark.lane->completed_ >= mark.ticket || !advance(mark.lane, hold, Host::aside)) return;
}

void Lane::finish_all() {
    Hold hold(lanes_lock);
    std::vector<Mark> all;
    for (const std::shared_ptr<Lane>& lane : busy()) all.push_back({lane, lane->submitted_});
    for (const Mark& mark : all) wait_late(mark, hold);
}

}  // namespace cuslice::fake
