// A program that mpirun starts in tests/app/test_processes.py. The first argument selects a test:
//
// - ring: the processes send messages around a ring (also of 2.2 GiB if DTRAIN_LARGE_MESSAGES is set);
// - facts: the processes have different facts, which is an error;
// - error, exit or stop: process 1 reports an error, exits, or stops itself (SIGSTOP).
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "processes/processes.h"

namespace dtrain {

namespace {

void check(bool condition, const char* what) {
  if (!condition) throw Error(fmt::format("{} is wrong", what));
}

/// Sends messages of all sizes to the next process and receives the messages of the previous process, all at
/// the same time and with the same tag.
void send_around(Processes& processes) {
  std::vector<size_t> sizes = {0, 1, 1000, size_t{3} << 20};
  if (std::getenv("DTRAIN_LARGE_MESSAGES")) sizes.push_back(size_t{2200} << 20);
  Transport& transport = processes.transport();
  const int next = (processes.rank() + 1) % processes.size();
  const int before = (processes.rank() + processes.size() - 1) % processes.size();
  std::vector<std::vector<std::byte>> sent, received;
  std::vector<Transport::Request> requests;
  for (const size_t size : sizes) {
    auto& out = sent.emplace_back(size);
    for (size_t i = 0; i < size; ++i)
      out[i] = static_cast<std::byte>(i * 31 + size + static_cast<size_t>(processes.rank()));
    received.emplace_back(size);
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    requests.push_back(transport.receive(before, 7, received[i]));
    requests.push_back(transport.send(next, 7, sent[i]));
  }
  for (const Transport::Request request : requests) wait_for(transport, request);
  for (size_t i = 0; i < sizes.size(); ++i)
    for (size_t j = 0; j < sizes[i]; ++j)
      check(received[i][j] == static_cast<std::byte>(j * 31 + sizes[i] + static_cast<size_t>(before)),
            "a message");
}

void agree(Processes& processes, const Json& facts) {
  processes.check_agreement(processes.all_gather(facts.dump()));
}

void ring(Processes& processes) {
  send_around(processes);
  const std::string text(100000, 'x');
  check(processes.broadcast(processes.rank() == 0 ? text : "") == text, "the broadcast");
  const auto all = processes.gather(std::string(static_cast<size_t>(processes.rank()), 'y'));
  for (size_t rank = 0; rank < all.size(); ++rank) check(all[rank].size() == rank, "the gathered text");
  processes.barrier();
  agree(processes, Json::object().set("build", "same"));
  if (processes.rank() == 0)
    fmt::print("{} processes, {} on this machine, {}\n", processes.size(), processes.local_size(),
               processes.mpi_version());
}

/// Makes process 1 fail in this way; the other processes wait for a message that process 1 never sends.
void fail(Processes& processes, std::string_view how) {
  processes.control().set_peer_timeout(std::chrono::seconds(3));
  processes.control().set_progress(12, "reading data");
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // a heartbeat is sent in this time
  if (processes.rank() == 1) {
    if (how == "error") throw Error("the disk is on fire");
    if (how == "exit") ::_exit(3);
    if (how == "stop") std::raise(SIGSTOP);
  }
  std::byte byte;
  wait_for(processes.transport(), processes.transport().receive(1, 9, std::span(&byte, 1)));
}

[[noreturn]] void end(Processes& processes, const std::exception& error, int exit_code) {
  // If all processes have found the same error, only process 0 reports it.
  if (processes.rank() > 0) processes.control().wait_for_failure(std::chrono::milliseconds(500));
  if (const auto failure = processes.control().failure()) {
    exit_code = failure->exit_code;
    if (processes.rank() == 0) processes.close_control();  // ends the thread after it has printed the failure
  } else {
    if (processes.rank() == 0) fmt::print(stderr, "error: {}\n", error.what());
    processes.control().report_error(error.what(), exit_code);
  }
  if (processes.rank() > 0) processes.control().wait_for_others(std::chrono::seconds(10));
  std::fflush(nullptr);
  ::_exit(exit_code);
}

int run(const std::string& what) {
  const std::unique_ptr<Processes> processes = connect_processes(detect_launch());
  if (!processes) {
    fmt::print("a single process\n");
    return 0;
  }
  if (processes->rank() == 0)
    processes->control().on_failure(
        [](const std::string& message) { fmt::print(stderr, "error: {}\n", message); });
  std::thread([&control = processes->control(), &transport = processes->transport()] {
    while (!control.failure()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    transport.abort();
  }).detach();
  try {
    if (what == "ring") {
      ring(*processes);
    } else if (what == "facts") {
      agree(*processes, Json::object().set("build", processes->rank()).set("oneDNN", "3.1"));
    } else {
      fail(*processes, what);
    }
  } catch (const UserError& error) {
    end(*processes, error, 2);
  } catch (const std::exception& error) {
    end(*processes, error, 1);
  }
  return processes->finish(0) ? 0 : 1;
}

}  // namespace

}  // namespace dtrain

int main(int argc, char** argv) {
  try {
    return dtrain::run(argc > 1 ? argv[1] : "ring");
  } catch (const dtrain::ReportedByProcess0&) {
    return 2;
  } catch (const dtrain::UserError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
