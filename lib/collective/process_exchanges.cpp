#include "collective/process_exchanges.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "device/device.h"

namespace dtrain {

bool MessageExchange::advance(Transport& transport) {
  if (!request_) {
    if (number_ != order_->begun || (after_ && !after_->has_completed())) return false;
    ++order_->begun;
    request_ = order_ == &sends_ ? transport.send(process_, tag_, sent_)
                                 : transport.receive(process_, tag_, received_);
  }
  if (!transport.test(*request_)) return false;
  request_.reset();
  return true;
}

/// Algorithm: let b be the lowest set bit of this process's rank r. The process receives the bytes from
/// process r - b, and then sends them to process r + c for each power of two c below b.
bool BroadcastExchange::advance(Transport& transport) {
  const auto rank = static_cast<uint32_t>(transport.rank()), size = static_cast<uint32_t>(transport.size());
  const uint32_t lowest = rank == 0 ? std::bit_ceil(size) : rank & (~rank + 1);
  if (phase_ == Phase::start) {
    if (rank != 0 && !bytes_.empty())
      transfers_.add(transport.receive(static_cast<int>(rank - lowest), tag_, bytes_));
    phase_ = Phase::receive;
  }
  if (phase_ == Phase::receive) {
    if (!transfers_.done(transport)) return false;
    for (uint32_t bit = lowest >> 1; bit > 0 && !bytes_.empty(); bit >>= 1)
      if (rank + bit < size) transfers_.add(transport.send(static_cast<int>(rank + bit), tag_, bytes_));
    phase_ = Phase::send;
  }
  return transfers_.done(transport);
}

bool AllGatherExchange::advance(Transport& transport) {
  if (!started_) {
    const auto part = [&](int process) {
      return all_.subspan(static_cast<size_t>(process) * mine_.size(), mine_.size());
    };
    std::copy(mine_.begin(), mine_.end(), part(transport.rank()).begin());
    for (int process = 0; process < transport.size() && !mine_.empty(); ++process) {
      if (process == transport.rank()) continue;
      transfers_.add(transport.receive(process, tag_, part(process)));
      transfers_.add(transport.send(process, tag_, mine_));
    }
    started_ = true;
  }
  return transfers_.done(transport);
}

void PartsExchange::start(Transport& transport) {
  const auto bytes_of = [this](Range part) {
    return std::as_writable_bytes(
        values_.subspan(static_cast<size_t>(part.begin), static_cast<size_t>(part.size())));
  };
  const int rank = transport.rank();
  for (int process = 0; process < transport.size(); ++process) {
    if (process == rank) continue;
    if (to_.value_or(rank) == rank)
      for (const Range part : parts_[static_cast<size_t>(process)])
        if (part.size() > 0) transfers_.add(transport.receive(process, tag_, bytes_of(part)));
    if (to_.value_or(process) == process)
      for (const Range part : parts_[static_cast<size_t>(rank)])
        if (part.size() > 0) transfers_.add(transport.send(process, tag_, bytes_of(part)));
  }
}

bool PartsExchange::advance(Transport& transport) {
  if (!started_) start(transport);
  started_ = true;
  return transfers_.done(transport);
}

void RoundTripsExchange::start_message(Transport& transport) {
  const bool begins = transport.rank() < with_, sends = messages_ % 2 == (begins ? 0 : 1);
  transfers_.add(sends ? transport.send(with_, tag_, bytes_) : transport.receive(with_, tag_, bytes_));
  ++messages_;
}

bool RoundTripsExchange::advance(Transport& transport) {
  while (transfers_.done(transport)) {
    if (messages_ == 2) begin_ = Clock::now();
    if (messages_ == 2 * (rounds_ + 1)) {
      const std::chrono::duration<double> taken = Clock::now() - begin_;
      if (transport.rank() < with_) seconds_ = taken.count() / rounds_;
      return true;
    }
    start_message(transport);
  }
  return false;
}

namespace {

std::vector<std::vector<Range>> nodes_of(const ReplicaRanks& ranks) {
  std::vector<std::vector<Range>> nodes;
  for (size_t process = 0; process < ranks.counts.size(); ++process)
    nodes.push_back(subtrees(ranks.of(static_cast<int>(process)), ranks.total()));
  return nodes;
}

std::vector<Range> joined(const std::vector<std::vector<Range>>& lists) {
  std::vector<Range> all;
  for (const std::vector<Range>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace

template <class T>
SumExchange<T>::SumExchange(const ReplicaRanks& ranks, int64_t n, int tag)
    : ranks_(ranks), n_(n), tag_(tag), nodes_(nodes_of(ranks)), tree_(joined(nodes_)) {}

template <class T>
SumExchange<T>::SumExchange(const ReplicaRanks& ranks, std::vector<Range> parts, int tag)
    : ranks_(ranks), parts_(std::move(parts)), tag_(tag), nodes_(nodes_of(ranks)), tree_(joined(nodes_)) {}

template <class T>
Range SumExchange<T>::part_at(int process) const {
  if (!parts_.empty()) return parts_[static_cast<size_t>(process)];
  return is_short() ? Range{0, n_} : part_of(n_, process, processes(), 16);
}

template <class T>
size_t SumExchange<T>::received_floats() const {
  size_t nodes = 0;
  for (int process = 0; process < processes(); ++process)
    if (process != ranks_.process) nodes += nodes_[static_cast<size_t>(process)].size();
  return nodes * static_cast<size_t>(part_at(ranks_.process).size());
}

template <class T>
void SumExchange<T>::send(Transport& transport, int process, const T* array, Range part) {
  if (part.size() == 0) return;
  const std::span<const T> sent(array, static_cast<size_t>(part.size()));
  transfers_.add(transport.send(process, tag_, std::as_bytes(sent)));
}

template <class T>
void SumExchange<T>::receive(Transport& transport, int process, T* array, Range part) {
  if (part.size() == 0) return;
  const std::span<T> received(array, static_cast<size_t>(part.size()));
  transfers_.add(transport.receive(process, tag_, std::as_writable_bytes(received)));
}

template <class T>
bool SumExchange<T>::advance(Transport& transport) {
  if (phase_ == Phase::start) {
    exchange_parts(transport);
    phase_ = Phase::parts;
  }
  if (!transfers_.done(transport)) return false;
  if (phase_ == Phase::parts) {
    add_parts();
    phase_ = Phase::sums;
    if (parts_.empty() && !is_short()) exchange_sums(transport);
  }
  if (!transfers_.done(transport)) return false;
  phase_ = Phase::start;
  return true;
}

/// Sends to every other process the part of this process's arrays that the other process adds, and receives
/// from every other process the part that this process adds.
template <class T>
void SumExchange<T>::exchange_parts(Transport& transport) {
  received_.resize(received_floats());
  const Range mine = part_at(ranks_.process);
  T* next = received_.data();
  for (int process = 0; process < processes(); ++process) {
    if (process == ranks_.process) continue;
    for (size_t node = 0; node < nodes_[static_cast<size_t>(process)].size(); ++node, next += mine.size())
      receive(transport, process, next, mine);
    const Range part = part_at(process);
    for (const T* array : mine_) send(transport, process, array + part.begin, part);
  }
}

template <class T>
void SumExchange<T>::add_parts() {
  const Range mine = part_at(ranks_.process);
  std::vector<const T*> arrays;
  const T* next = received_.data();
  for (int process = 0; process < processes(); ++process)
    for (size_t node = 0; node < nodes_[static_cast<size_t>(process)].size(); ++node) {
      const bool is_mine = process == ranks_.process;
      arrays.push_back(is_mine ? mine_[node] + mine.begin : next);
      if (!is_mine) next += mine.size();
    }
  tree_.add<T>(arrays, mine_[0] + mine.begin, {0, mine.size()});
}

/// Sends the sum of this process's part to the other processes, and receives from them the sums of all other
/// parts.
template <class T>
void SumExchange<T>::exchange_sums(Transport& transport) {
  const Range mine = part_at(ranks_.process);
  for (int process = 0; process < processes(); ++process) {
    if (process == ranks_.process) continue;
    const Range part = part_at(process);
    receive(transport, process, mine_[0] + part.begin, part);
    send(transport, process, mine_[0] + mine.begin, mine);
  }
}

template class SumExchange<float>;
template class SumExchange<double>;

}  // namespace dtrain
