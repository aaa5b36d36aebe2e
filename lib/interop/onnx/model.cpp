#include "interop/onnx/model.h"

#include <bit>

#include "base/formats/protobuf.h"
#include "base/half.h"

namespace dtrain {

namespace {

// The constants in the functions below are the field numbers in onnx.proto.

std::string attribute_bytes(const OnnxAttribute& attribute) {
  constexpr int kName = 1, kFloat = 2, kInt = 3, kString = 4, kInts = 8, kType = 20;
  const std::string name = proto_bytes(kName, attribute.first);
  struct TypedValue {
    std::string operator()(int64_t value) const { return proto_varint(kInt, value) + proto_varint(kType, 2); }
    std::string operator()(float value) const {
      return proto_float(kFloat, static_cast<double>(value)) + proto_varint(kType, 1);
    }
    std::string operator()(const std::string& value) const {
      return proto_bytes(kString, value) + proto_varint(kType, 3);
    }
    std::string operator()(const std::vector<int64_t>& values) const {
      std::string all;
      for (const int64_t value : values) all += proto_varint(kInts, value);
      return all + proto_varint(kType, 7);
    }
  };
  return name + std::visit(TypedValue{}, attribute.second);
}

std::string node_bytes(const OnnxNode& node) {
  constexpr int kInput = 1, kOutput = 2, kName = 3, kOp = 4, kAttribute = 5;
  std::string bytes;
  for (const std::string& input : node.inputs) bytes += proto_bytes(kInput, input);
  for (const std::string& output : node.outputs) bytes += proto_bytes(kOutput, output);
  bytes += proto_bytes(kName, node.name) + proto_bytes(kOp, node.op);
  for (const OnnxAttribute& attribute : node.attributes)
    bytes += proto_bytes(kAttribute, attribute_bytes(attribute));
  return bytes;
}

/// Returns a serialized StringStringEntryProto.
std::string entry_bytes(const std::string& key, const std::string& value) {
  return proto_bytes(1, key) + proto_bytes(2, value);
}

std::string tensor_bytes(const OnnxTensor& tensor, const OnnxExternal& external) {
  constexpr int kDims = 1, kType = 2, kName = 8, kRawData = 9, kExternalData = 13, kDataLocation = 14;
  std::string bytes;
  for (const int64_t extent : tensor.shape) bytes += proto_varint(kDims, extent);
  bytes += proto_varint(kType, static_cast<int64_t>(tensor.type)) + proto_bytes(kName, tensor.name);
  if (external.file.empty()) return bytes + proto_bytes(kRawData, onnx_raw_data(tensor));
  bytes += proto_bytes(kExternalData, entry_bytes("location", external.file)) +
           proto_bytes(kExternalData, entry_bytes("offset", std::to_string(external.offset))) +
           proto_bytes(kExternalData, entry_bytes("length", std::to_string(external.bytes)));
  return bytes + proto_varint(kDataLocation, 1);
}

/// Returns a serialized ValueInfoProto.
std::string value_bytes(const OnnxValue& value) {
  constexpr int kName = 1, kType = 2, kTensorType = 1, kElementType = 1, kShape = 2, kDimension = 1;
  constexpr int kSize = 1, kOpenSize = 2;
  std::string shape = proto_bytes(kDimension, proto_bytes(kOpenSize, "batch"));
  for (const int64_t extent : value.sample) shape += proto_bytes(kDimension, proto_varint(kSize, extent));
  const std::string tensor =
      proto_varint(kElementType, static_cast<int64_t>(value.type)) + proto_bytes(kShape, shape);
  return proto_bytes(kName, value.name) + proto_bytes(kType, proto_bytes(kTensorType, tensor));
}

template <class Number>
void append(std::string& bytes, Number number) {
  for (size_t i = 0; i < sizeof(Number); ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
}

}  // namespace

int64_t onnx_ir_version(int64_t opset) {
  if (opset >= 23) return 11;
  if (opset >= 21) return 10;
  if (opset >= 19) return 9;
  return opset >= 15 ? 8 : 7;
}

std::string onnx_raw_data(const OnnxTensor& tensor) {
  std::string bytes;
  const auto count = static_cast<size_t>(tensor.shape.elements());
  bytes.reserve(count * 4);
  for (const float value : tensor.floats)
    if (tensor.type == OnnxType::float16)
      append(bytes, to_float16(value));
    else
      append(bytes, std::bit_cast<uint32_t>(value));
  for (const int64_t value : tensor.integers) append(bytes, static_cast<uint64_t>(value));
  return bytes;
}

std::string onnx_bytes(const OnnxModel& model, const std::vector<OnnxExternal>& external) {
  constexpr int kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
  constexpr int kIrVersion = 1, kProducer = 2, kGraph = 7, kOpsets = 8, kMetadata = 14, kOpsetVersion = 2;
  std::string graph;
  for (const OnnxNode& node : model.nodes) graph += proto_bytes(kNode, node_bytes(node));
  graph += proto_bytes(kName, model.name);
  for (size_t i = 0; i < model.initializers.size(); ++i)
    graph += proto_bytes(
        kInitializer, tensor_bytes(model.initializers[i], external.empty() ? OnnxExternal{} : external[i]));
  for (const OnnxValue& input : model.inputs) graph += proto_bytes(kInput, value_bytes(input));
  for (const OnnxValue& output : model.outputs) graph += proto_bytes(kOutput, value_bytes(output));
  std::string bytes =
      proto_varint(kIrVersion, onnx_ir_version(model.opset)) + proto_bytes(kProducer, "dtrain");
  bytes += proto_bytes(kGraph, graph);
  bytes += proto_bytes(kOpsets, proto_varint(kOpsetVersion, model.opset));
  for (const auto& [key, value] : model.metadata) bytes += proto_bytes(kMetadata, entry_bytes(key, value));
  return bytes;
}

}  // namespace dtrain
