// A column is one array of a data set in its stored form, for example the images or the labels of a file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/tensor_spec.h"

namespace dtrain {

/// Reads rows by index. The values have their stored type, and no transform is applied. A row has the same
/// values every time it is read, so caches may keep it. Everything that depends on the seed and the epoch is
/// done by a ColumnStage (column_stage.h). Safe to read from several threads.
class Column {
 public:
  virtual ~Column() = default;
  /// Returns the shape and type of one row.
  virtual const TensorSpec& spec() const = 0;
  /// Returns the number of rows.
  virtual int64_t size() const = 0;
  /// Copies `rows` (each in [0, size())) contiguously to `dst`. Throws the same errors as check(), and
  /// UserError if the file's content is not in the declared format.
  void read(std::span<const int64_t> rows, void* dst) const {
    checked([&] { read_rows(rows, dst); });
  }
  /// Returns the address of row 0 if all rows are contiguous in memory, else null. Read this memory only in a
  /// function that is passed to checked().
  virtual const std::byte* data() const { return nullptr; }
  /// Throws Error if the file of the column was truncated or modified, or cannot be read. Data that were read
  /// before may then be wrong.
  virtual void check() const {}
  /// Calls `read`, then check(). If both throw, rethrows the error of check().
  template <class Read>
  void checked(Read read) const {
    try {
      read();
    } catch (const Error&) {
      check();
      throw;
    }
    check();
  }
  /// Returns the maximum number of bytes that one call of read() allocates in addition to the destination.
  virtual size_t working_bytes() const { return 0; }
  /// Returns true if reading does not access a file.
  virtual bool in_memory() const = 0;

  int64_t row_elements() const { return spec().shape.elements(); }
  size_t row_bytes() const { return static_cast<size_t>(row_elements()) * bytes_of(spec().dtype); }

 protected:
  virtual void read_rows(std::span<const int64_t> rows, void* dst) const = 0;
};

/// One column per model input, in the model's order, then one per target.
using Columns = std::vector<std::shared_ptr<const Column>>;

/// Allocates uninitialized memory for a large array, in huge pages if the system has them.
std::shared_ptr<std::byte> allocate_bytes(size_t bytes);

/// A column whose rows are contiguous in memory.
class MemoryColumn : public Column {
 public:
  /// `data` holds `size` rows.
  MemoryColumn(TensorSpec spec, int64_t size, std::shared_ptr<const std::byte> data)
      : spec_(std::move(spec)), size_(size), data_(std::move(data)) {}

  const TensorSpec& spec() const override { return spec_; }
  int64_t size() const override { return size_; }
  const std::byte* data() const override { return data_.get(); }
  bool in_memory() const override { return true; }

 protected:
  void read_rows(std::span<const int64_t> rows, void* dst) const override;

 private:
  TensorSpec spec_;
  int64_t size_;
  std::shared_ptr<const std::byte> data_;
};

/// Splits the rows [from, to) into blocks of at most about 4 MiB, and calls visit(first, count, byte_offset)
/// for each block in order. A block consists of `count` rows and begins with row `first`. `byte_offset` is
/// the distance in bytes between row `from` and row `first`.
template <class Visit>
void for_each_block(const Column& column, int64_t from, int64_t to, Visit visit) {
  const auto row_bytes = static_cast<int64_t>(column.row_bytes());
  const int64_t step = std::max<int64_t>(1, (int64_t{4} << 20) / std::max<int64_t>(1, row_bytes));
  for (int64_t first = from; first < to; first += step)
    visit(first, std::min(step, to - first), static_cast<size_t>((first - from) * row_bytes));
}

/// Returns first, first + 1, ..., first + count - 1, for Column::read.
std::vector<int64_t> row_numbers(int64_t first, int64_t count);

/// Finds the runs of consecutive row indices in `rows`, and calls visit(first_row, place, count) for each
/// run. A run consists of `count` row indices; the first one is `first_row`, at position `place` of `rows`.
template <class Visit>
void for_each_run(std::span<const int64_t> rows, Visit visit) {
  for (size_t i = 0; i < rows.size();) {
    size_t end = i + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    visit(rows[i], i, static_cast<int64_t>(end - i));
    i = end;
  }
}

}  // namespace dtrain
