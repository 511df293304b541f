// answer_later.cpp - token and payload are answered later, from another thread: the questions are objects that move into a queue.
//
//   c++ -std=c++17 -pthread answer_later.cpp $(pkg-config --cflags --libs usher) -o answer_later
//   ./answer_later LICENSE_URL SSM_URL CONTENT_TOKEN       (a FairPlay server that enforces sessions by renewals)
//
// SPDX-License-Identifier: Apache-2.0
#include <condition_variable>
#include <deque>
#include <iostream>
#include <thread>
#include <usher/usher.hpp>

/** Does one thing after the other: your back end, your CDM. */
class worker {
 public:
  ~worker() { post(nullptr), thread_.join(); }
  void post(std::function<void()> work) {
    std::lock_guard<std::mutex> hold(lock_);
    queue_.push_back(std::move(work)), due_.notify_one();
  }
 private:
  void run() {
    for (std::unique_lock<std::mutex> hold(lock_);;) {
      due_.wait(hold, [this] { return !queue_.empty(); });
      auto work = std::move(queue_.front());
      queue_.pop_front();
      if (!work) return;
      hold.unlock(), work(), hold.lock();
    }
  }
  std::mutex lock_;
  std::condition_variable due_;
  std::deque<std::function<void()>> queue_;
  std::thread thread_{[this] { run(); }};
};

int main(int argc, char **argv) try {
  if (argc != 4) return std::cerr << "usage: " << argv[0] << " LICENSE_URL SSM_URL CONTENT_TOKEN\n", 2;
  worker elsewhere;
  usher::context context;
  usher::ssp_options ssp;
  ssp.license_url = argv[1], ssp.ssm_url = argv[2];
  const auto delegate = context.new_ssp_delegate(ssp);
  delegate.set_token_callback([&](usher::token_request request) { // std::function wants copyable things: hence the shared_ptr
    elsewhere.post([&, question = std::make_shared<usher::token_request>(std::move(request))] { std::cout << "token: " << question->answer(argv[3]) << std::endl; });
  });
  usher::playback_options item;
  item.delegate = &delegate;
  item.payload = [&](usher::payload_request request) {
    elsewhere.post([question = std::make_shared<usher::payload_request>(std::move(request))] { std::cout << "payload: " << question->answer("fresh SPC") << std::endl; });
  };
  item.renewed = [](usher::playback_ref, const usher::response_info &licence, uint64_t) { std::cout << "renewed: " << licence.data.size() << " bytes" << std::endl; };
  const auto screen = context.new_player();
  const auto playback = screen.play(std::move(item));
  playback.get_license({usher::key_system::fairplay, "SPC"});
  std::this_thread::sleep_for(std::chrono::milliseconds(2500)); // decode; the library asks for a payload when a renewal is due
  context.close();
} catch (const usher::error &error) {
  return std::cerr << error.what() << '\n', 1;
}
