// How a batch's samples come to a replica.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "collective/collective.h"
#include "data/loader/loader.h"
#include "nn/plan.h"
#include "ops/ops.h"

namespace dtrain {

/// Belongs to one slot of a replica and its thread, and fills those columns of a frame that are on that slot.
/// On the CPU samples are read right into the frame. For a GPU they are read as they are stored into one of
/// two staging buffers, uploaded while the step before computes, and converted on the device. Of a data set
/// that is kept on the device only the order of an epoch's samples is uploaded.
class Feed {
 public:
  explicit Feed(Ops& ops) : ops_(ops), context_(ops.context()) {}

  /// Samples `range` of the batch come into the frame's columns; of those that are kept on the device,
  /// gather() brings them.
  void load(const Batch& batch, Range range, const Frame& frame);
  /// Those that are kept on the device, once load() has been called. `first`: where the batch begins in the
  /// order of the epoch, in the device's memory. Can be captured, and then serves every batch.
  void gather(const Batch& batch, Range range, const Frame& frame, const int64_t* first);

 private:
  /// A column as it comes to the device.
  struct Column {
    GatherSpec spec;
    Buffer scale, offset;  // of the spec
    bool stored = false;   // as the data set stores it; else as the model wants it
    Buffer resident;       // all rows, where they are kept there
    size_t row_bytes() const { return static_cast<size_t>(spec.row_elements) * bytes_of(spec.from); }
  };
  struct Source {
    std::vector<Column> columns;
    Buffer order;  // of the epoch, where the columns are resident
    int64_t order_number = -1;
  };
  struct Staging {
    Buffer host, device;
    std::unique_ptr<Event> uploaded, consumed;  // the copy to the device, and what reads it there
  };

  Source& source_of(const Dataset* dataset, const Frame& frame);
  Buffer on_device(std::span<const float> values);
  void make_resident(Column& column, const Dataset& dataset, size_t index);
  void load_order(Source& source, const BatchSource& from);
  void load_staged(Source& source, const Batch& batch, Range range, const Frame& frame);
  void read(const Source& source, const Batch& batch, Range range, std::span<void* const> to,
            const Frame& frame);

  Ops& ops_;
  Context& context_;
  std::map<const Dataset*, Source> sources_;
  std::array<Staging, 2> staging_;
  size_t next_ = 0;  // of the staging areas
};

}  // namespace dtrain
