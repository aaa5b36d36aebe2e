#include "processes/mpi_transport.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

constexpr size_t kChunk = size_t{1} << 30;

/// Calls f(offset, bytes) for each chunk of a message. For an empty message, calls f once with 0 bytes.
template <class Function>
void for_each_chunk(size_t bytes, Function f) {
  size_t offset = 0;
  do {
    const size_t n = std::min(kChunk, bytes - offset);
    f(offset, static_cast<int>(n));
    offset += n;
  } while (offset < bytes);
}

}  // namespace

void check_mpi(const MpiTable& mpi, int error, const char* what) {
  if (error == 0) return;
  std::array<char, 1024> text{};
  mpi.error_text(error, text.data(), static_cast<int>(text.size()));
  throw Error(fmt::format("{} failed: {}", what, text.data()));
}

MpiTransport::MpiTransport(const MpiTable& mpi) : mpi_(mpi) {
  check_mpi(mpi_, mpi_.world(&rank_, &size_), "MPI_Comm_rank");
}

Transport::Request MpiTransport::send(int to, int tag, std::span<const std::byte> bytes) {
  check_usable();
  Chunks chunks;
  for_each_chunk(bytes.size(), [&](size_t offset, int n) {
    check_mpi(mpi_, mpi_.isend(bytes.data() + offset, n, to, tag, &chunks.emplace_back()), "MPI_Isend");
  });
  return keep(std::move(chunks));
}

Transport::Request MpiTransport::receive(int from, int tag, std::span<std::byte> bytes) {
  check_usable();
  Chunks chunks;
  for_each_chunk(bytes.size(), [&](size_t offset, int n) {
    check_mpi(mpi_, mpi_.irecv(bytes.data() + offset, n, from, tag, &chunks.emplace_back()), "MPI_Irecv");
  });
  return keep(std::move(chunks));
}

bool MpiTransport::test(Request request) {
  check_usable();
  const auto found = running_.find(request.number);
  if (found == running_.end()) throw Error("MPI: a request was tested again after it had finished");
  Chunks& chunks = found->second;
  while (!chunks.empty()) {
    bool done = false;
    check_mpi(mpi_, mpi_.test(&chunks.front(), &done), "MPI_Test");
    if (!done) return false;
    chunks.pop_front();
  }
  running_.erase(found);
  return true;
}

Transport::Request MpiTransport::keep(Chunks chunks) {
  const Request request{next_++};
  running_.emplace(request.number, std::move(chunks));
  return request;
}

void MpiTransport::check_usable() const {
  if (aborted_) throw Error("the communication among processes was aborted because one of them failed");
}

}  // namespace dtrain
