// TensorBoard's files: records in TFRecord's framing, each a tensorflow.Event as protocol buffers encode it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrain {

/// CRC-32C (Castagnoli) of these bytes.
uint32_t crc32c(std::string_view bytes);
/// A record as it stands in a file: length, masked CRC, the data, masked CRC.
std::string tf_record(std::string_view data);

// The data of events. Times are seconds since 1970.

/// The first event of a file: which version it is of.
std::string version_event(double time);
/// Says that steps from `step` on, should a reader know any, are void: the run goes on from before them.
std::string session_start_event(double time, int64_t step);
/// One summary with a value (as a float) for each tag.
std::string scalars_event(double time, int64_t step, std::span<const std::pair<std::string, double>> scalars);

/// How values are distributed, as HistogramProto has it.
struct Histogram {
  double min = 0, max = 0, sum = 0, sum_squares = 0;
  int64_t count = 0;
  std::vector<double> limits, counts;  // of buckets: their upper ends, and how many values are in each
};
/// 30 buckets of the same width between the least and the greatest value; what is no finite number is left
/// out.
Histogram histogram_of(std::span<const float> values);
std::string histogram_event(double time, int64_t step, const std::string& tag, const Histogram& histogram);

/// A node of a graph as TensorBoard draws it. A name with slashes lies in scopes.
struct EventGraphNode {
  std::string name, op;
  std::vector<std::string> inputs;           // "name", or "name:1" for another than a node's first output
  std::vector<std::vector<int64_t>> shapes;  // of the outputs; -1 is whatever it may be
  int64_t parameters = 0;
};
std::string graph_event(double time, std::span<const EventGraphNode> nodes);
/// A picture, encoded as a PNG.
std::string image_event(double time, int64_t step, const std::string& tag, int64_t height, int64_t width,
                        int64_t channels, std::string_view png);

/// How many bytes at the beginning of a file are whole records of steps up to `last_step` (records without a
/// step are of step 0); the first other record ends them, as steps ascend in a file.
size_t records_up_to(std::string_view file, int64_t last_step);

}  // namespace dtrain
