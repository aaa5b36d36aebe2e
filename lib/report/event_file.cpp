#include "report/event_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/formats/protobuf.h"

namespace dtrain {

namespace {

constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
    table[i] = crc;
  }
  return table;
}();

/// Masks a CRC as the TFRecord format requires. The mask is needed because a CRC is weak if it is computed
/// over data that contain another CRC.
uint32_t masked(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

// Field numbers of tensorflow.Event and its nested messages.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kGraph = 4, kSummary = 5, kSessionLog = 7;
constexpr int kSummaryValue = 1, kTag = 1, kSimpleValue = 2, kImage = 4, kHisto = 5;
constexpr int kStatus = 1, kStart = 1;

std::string event(double time, int64_t step, const std::string& content) {
  return proto_double(kWallTime, time) + (step != 0 ? proto_varint(kStep, step) : "") + content;
}

/// Returns an event with a summary of one value. The field `number` of the value contains `message`.
std::string summary_event(double time, int64_t step, const std::string& tag, int number,
                          const std::string& message) {
  return event(time, step,
               proto_bytes(kSummary, proto_bytes(kSummaryValue,
                                                 proto_bytes(kTag, tag) + proto_bytes(number, message))));
}

/// Encodes a tensorflow.NodeDef with the attributes that TensorBoard shows.
std::string node_def(const EventGraphNode& node) {
  constexpr int kName = 1, kOp = 2, kInput = 3, kAttribute = 5;
  constexpr int kKey = 1, kValue = 2, kList = 1, kInteger = 3, kShape = 7, kDimension = 2, kSize = 1;
  std::string shapes;
  for (const std::vector<int64_t>& shape : node.shapes) {
    std::string dimensions;
    for (const int64_t size : shape) dimensions += proto_bytes(kDimension, proto_varint(kSize, size));
    shapes += proto_bytes(kShape, dimensions);
  }
  const auto attribute = [](std::string_view name, const std::string& value) {
    return proto_bytes(kAttribute, proto_bytes(kKey, name) + proto_bytes(kValue, value));
  };
  std::string text = proto_bytes(kName, node.name) + proto_bytes(kOp, node.op);
  for (const std::string& input : node.inputs) text += proto_bytes(kInput, input);
  text += attribute("_output_shapes", proto_bytes(kList, shapes));
  if (node.parameters > 0) text += attribute("parameters", proto_varint(kInteger, node.parameters));
  return text;
}

/// Returns the step in an event's data, or 0 if absent.
int64_t step_of(std::string_view data) {
  for (uint64_t head = 0, value = 0; take_varint(data, head);) {
    const auto wire = static_cast<ProtoWire>(head & 7);
    size_t skipped = wire == ProtoWire::fixed64 ? 8 : wire == ProtoWire::fixed32 ? 4 : 0;
    if (skipped == 0 && !take_varint(data, value)) return 0;
    if (wire == ProtoWire::varint && head >> 3 == kStep) return static_cast<int64_t>(value);
    if (wire == ProtoWire::bytes) skipped = value;
    if (skipped > data.size()) return 0;
    data.remove_prefix(skipped);
  }
  return 0;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char byte : bytes) crc = kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::string tf_record(std::string_view data) {
  const std::string length = little_endian(uint64_t{data.size()});
  return length + little_endian(masked(crc32c(length))) + std::string(data) +
         little_endian(masked(crc32c(data)));
}

std::string version_event(double time) {
  return event(time, 0, proto_bytes(kFileVersion, "brain.Event:2"));
}

std::string session_start_event(double time, int64_t step) {
  return event(time, step, proto_bytes(kSessionLog, proto_varint(kStatus, kStart)));
}

std::string scalars_event(double time, int64_t step,
                          std::span<const std::pair<std::string, double>> scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars)
    summary += proto_bytes(kSummaryValue, proto_bytes(kTag, tag) + proto_float(kSimpleValue, value));
  return event(time, step, proto_bytes(kSummary, summary));
}

Histogram histogram_of(std::span<const float> values) {
  constexpr size_t kBuckets = 30;
  Histogram made;
  made.min = std::numeric_limits<double>::infinity();
  made.max = -made.min;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double wide = static_cast<double>(value);
    made.min = std::min(made.min, wide);
    made.max = std::max(made.max, wide);
    made.sum += wide;
    made.sum_squares += wide * wide;
    ++made.count;
  }
  if (made.count == 0) made.min = made.max = 0;
  const double width = (made.max - made.min) / kBuckets;
  const size_t buckets = width > 0 ? kBuckets : 1;
  for (size_t i = 1; i < buckets; ++i) made.limits.push_back(made.min + static_cast<double>(i) * width);
  made.limits.push_back(made.max);
  made.counts.assign(buckets, 0.0);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double place = width > 0 ? (static_cast<double>(value) - made.min) / width : 0;
    ++made.counts[std::min(buckets - 1, static_cast<size_t>(place))];
  }
  return made;
}

std::string histogram_event(double time, int64_t step, const std::string& tag, const Histogram& histogram) {
  const std::string histo = proto_double(1, histogram.min) + proto_double(2, histogram.max) +
                            proto_double(3, static_cast<double>(histogram.count)) +
                            proto_double(4, histogram.sum) + proto_double(5, histogram.sum_squares) +
                            proto_packed(6, histogram.limits) + proto_packed(7, histogram.counts);
  return summary_event(time, step, tag, kHisto, histo);
}

std::string graph_event(double time, std::span<const EventGraphNode> nodes) {
  constexpr int kNode = 1;
  std::string graph;
  for (const EventGraphNode& node : nodes) graph += proto_bytes(kNode, node_def(node));
  return event(time, 0, proto_bytes(kGraph, graph));
}

std::string image_event(double time, int64_t step, const std::string& tag, int64_t height, int64_t width,
                        int64_t channels, std::string_view png) {
  const std::string image =
      proto_varint(1, height) + proto_varint(2, width) + proto_varint(3, channels) + proto_bytes(4, png);
  return summary_event(time, step, tag, kImage, image);
}

size_t records_up_to(std::string_view file, int64_t last_step) {
  constexpr size_t kHead = 12, kTail = 4;
  size_t kept = 0;
  while (file.size() - kept >= kHead + kTail) {
    const std::string_view rest = file.substr(kept);
    const uint64_t length = read_little_endian(rest.substr(0, 8));
    if (length > rest.size() - kHead - kTail) break;
    const std::string_view data = rest.substr(kHead, length);
    if (masked(crc32c(rest.substr(0, 8))) != read_little_endian(rest.substr(8, 4)) ||
        masked(crc32c(data)) != read_little_endian(rest.substr(kHead + length, 4)) ||
        step_of(data) > last_step)
      break;
    kept += kHead + length + kTail;
  }
  return kept;
}

}  // namespace dtrain
