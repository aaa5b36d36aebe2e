// Tests the errors of invalid placements, and their locations.
#include <algorithm>

#include <fmt/format.h>

#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

constexpr std::string_view kGood = R"(seed: 1
model:
  inputs: {image: [8, 8, 3], hint: [4]}
  blocks:
    body:
      layers:
        - dense: {name: in, units: 4, activation: relu}
        - dense: {name: out, units: 4}
  layers:
    - conv2d: {name: left/stem, filters: 4, kernel_size: 3, inputs: image}
    - global_average_pooling2d: {name: left/mean}
    - dense: {name: right/stem, units: 4, inputs: hint, activation: relu}
    - dense: {name: right/twin, shared_with: right/stem}
    - add: {name: merged, inputs: [left/mean, right/twin]}
    - body: {repeat: 2}
    - dense: {name: head, units: 3}
dataset: {train: {synthetic: {samples: 64, target: {classes: 3}}}}
strategy: STRATEGY
train:
  batch_size: 16
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: sgd
)";

struct WrongPlacement {
  std::string strategy;
  /// `line` is a line of `kGood`, and `by` is its replacement. If `line` is empty, no line is replaced.
  std::string line, by;
  /// The expected message or its beginning. The @ in the strategy's text marks the expected location.
  std::string message;
};

std::string replaced(std::string text, const std::string& old, const std::string& by) {
  const size_t at = text.find(old);
  REQUIRE_MESSAGE(at != std::string::npos, old);
  REQUIRE(text.find(old, at + 1) == std::string::npos);
  return text.replace(at, old.size(), by);
}

/// Removes the marker from the text and returns its location, "test.yaml:LINE:COLUMN".
std::string take_marker(std::string& text) {
  const size_t at = text.find('@');
  REQUIRE(at != std::string::npos);
  text.erase(at, 1);
  REQUIRE(text.find('@') == std::string::npos);
  const auto begin = text.begin(), end = begin + static_cast<std::ptrdiff_t>(at);
  const size_t line_begin = text.rfind('\n', at) + 1;  // 0 on the first line
  return fmt::format("test.yaml:{}:{}", 1 + std::count(begin, end, '\n'), at - line_begin + 1);
}

/// Reads the configuration like `fit` and `check`.
std::string errors_of(const std::string& yaml) {
  Diagnostics diagnostics;
  const ConfigNode node = parse_yaml(yaml, "test.yaml", diagnostics);
  parse_run_config(node, "test", diagnostics, ConfigUse::training);
  try {
    diagnostics.throw_if_errors();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string pipeline(const std::string& options) {
  return "{pipeline: {" + options + "}}";
}

std::string placed(const std::string& layers) {
  return "{placed: {layers: {" + layers + "}}}";
}

/// Returns the dense layer on line 16 with additional keys.
const std::string kHead = "    - dense: {name: head, units: 3}";
std::string head_with(const std::string& keys) {
  return "    - dense: {name: head, units: 3, " + keys + "}";
}
const std::string kTwin = "    - dense: {name: right/twin, shared_with: right/stem}";
const std::string kBody = "    - body: {repeat: 2}";

const WrongPlacement kWrong[] = {
    // Missing or invalid devices.
    {placed("'left/*': @gpu:9999"), "", "", "gpu:9999: "},
    {placed("'left/*': cpu:0"), kHead, head_with("device: @gpu:9999"), "gpu:9999: "},
    {"placed", kBody, "    - body: {repeat: 2, device: @gpu:9999}", "gpu:9999: "},
    {pipeline("devices: [cpu:0, @gpu:9999]"), "", "", "gpu:9999: "},
    {"{sharded: {devices: [@gpu:9999]}}", "", "", "gpu:9999: "},
    {"{sharded: {devices: [cpu:0, @gpu:9999]}}", "", "",
     "sharded: all devices must be of the same kind, but cpu:0 and gpu:9999 are not"},
    {"{sharded: {devices: [gpu:9999, @gpu:9999]}}", "", "",
     "sharded: each GPU may be listed only once, but gpu:9999 is listed twice"},
    {"{mirrored: {devices: [cpu:0, @gpu:9999]}}", "", "", "gpu:9999: "},
    {"{single: {device: @gpu:9999}}", "", "", "gpu:9999: "},
    {placed("head: @tpu:0"), "", "",
     "placed's layers.head: expected a device such as cpu:0 or gpu:1, found 'tpu:0'"},
    {placed("head: @[cpu:0, cpu:1]"), "", "", "placed's layers.head: expected a device such as cpu:0"},
    {placed("head: @cpu"), "", "",
     "placed's layers.head: expected a device such as cpu:0 or gpu:1, found 'cpu'"},
    {placed("head: @cpu:01"), "", "", "placed's layers.head: expected a device such as cpu:0"},
    {"placed", kHead, head_with("device: @auto"),
     "dense's device: expected a device such as cpu:0 or gpu:1, found 'auto'"},
    {pipeline("devices: [cpu:0, @cpu:1024]"), "", "",
     "pipeline's devices: expected a CPU device from cpu:0 to cpu:1023, found 'cpu:1024'"},
    {pipeline("devices: [cpu:0, @cpu:x]"), "", "", "pipeline's devices: expected a device such as cpu:0"},
    {pipeline("devices: @[]"), "", "", "pipeline's devices: expected 'auto' or a list of devices"},
    // Patterns.
    {placed("'left/*': cpu:0, @'up/*': cpu:1"), "", "",
     "placed: the pattern 'up/*' matches no layer; the existing names are 'left/stem', 'left/mean', "},
    {placed("@haed: cpu:0"), "", "", "placed: the pattern 'haed' matches no layer; did you mean 'head'?"},
    {placed("@left: cpu:0"), "", "", "placed: the pattern 'left' matches no layer; did you mean 'left/*'?"},
    {placed("@image: cpu:0"), "", "", "placed: the pattern 'image' matches no layer; the existing names are"},
    {placed("@'right/stem/*': cpu:0"), "", "",
     "placed: the pattern 'right/stem/*' matches no layer; did you mean 'right/stem'?"},
    {placed("'left/*': cpu:0, @'*/stem': cpu:1"), "", "",
     "placed: 'left/*' puts the layer 'left/stem' on cpu:0, but '*/stem' puts it on cpu:1; give the layer "
     "its own `device:`, which takes precedence"},
    {placed("'*': cpu:0, @head: cpu:1"), "", "",
     "placed: '*' puts the layer 'head' on cpu:0, but 'head' puts it on cpu:1"},
    {"@placed", "", "", "placed: no layer has a device; give patterns"},
    {"{@placed: {layers: {}}}", "", "", "placed: no layer has a device; give patterns"},
    {"{placed: {layers: @['left/*', cpu:0]}}", "", "", "placed's layers: expected a mapping from layers"},
    {"{placed: {@layer: {head: cpu:0}}}", "", "", "unknown key 'layer' in placed; did you mean 'layers'?"},
    {"{placed: {@'left/*': cpu:0}}", "", "", "unknown key 'left/*' in placed; expected one of layers"},
    // Layers with the option `device`, under strategies that do not place layers.
    {"single", kHead, head_with("device: @cpu:0"),
     "device: 'head' is assigned to cpu:0, but the strategy 'single' cannot assign devices to individual "
     "layers; use `strategy: placed`"},
    {"{mirrored: {devices: [cpu:0, cpu:1]}}", kHead, head_with("device: @cpu:1"),
     "device: 'head' is assigned to cpu:1, but the strategy 'mirrored' cannot assign devices to individual "
     "layers"},
    {pipeline("devices: [cpu:0, cpu:1]"), kHead, head_with("device: @cpu:1"),
     "device: 'head' is assigned to cpu:1, but the strategy 'pipeline' cannot assign devices to individual "
     "layers"},
    {"{sharded: {devices: [cpu:0, cpu:1]}}", kHead, head_with("device: @cpu:1"),
     "device: 'head' is assigned to cpu:1, but the strategy 'sharded' cannot assign devices to individual "
     "layers"},
    {"single", kBody, "    - body: {repeat: 2, device: @cpu:1}", "device: 'body/in' is assigned to cpu:1"},
    // Stages.
    {pipeline("devices: [cpu:0, cpu:1], stages: [@haed]"), "", "",
     "stages: 'haed' is not a layer of the model; did you mean 'head'?"},
    {pipeline("devices: [cpu:0, cpu:1], stages: [@hint]"), "", "",
     "stages: 'hint' is not a layer of the model"},
    {pipeline("devices: [cpu:0, cpu:1], stages: [@right/stem/activation]"), "", "",
     "stages: 'right/stem/activation' is not a layer of the model"},
    {pipeline("devices: [cpu:0, cpu:1, cpu:2], stages: [body, @body]"), "", "",
     "stages: 'body' begins at the same layer as 'body', so a stage would have no layers"},
    {pipeline("devices: [cpu:0, cpu:1, cpu:2], stages: [body, @body/in]"), "", "",
     "stages: 'body/in' begins at the same layer as 'body', so a stage would have no layers"},
    {pipeline("devices: [cpu:0, cpu:1, cpu:2], stages: [head, @merged]"), "", "",
     "stages: 'merged' comes before 'head' in the model; name layers in the model's order"},
    {pipeline("devices: [cpu:0, cpu:1], stages: [@left/stem]"), "", "",
     "stages: 'left/stem' is the first layer of the model, so the first stage would have no layers"},
    {pipeline("devices: [cpu:0, cpu:1, cpu:2], stages: @[head]"), "", "",
     "stages: 3 devices per replica make 3 stages, so 'stages' must name 2 layers (the first layer of each "
     "stage except the first stage), but it names 1; `stages: auto` chooses the layers"},
    {pipeline("devices: [cpu:0, cpu:1], stages: @[merged, head]"), "", "",
     "stages: 2 devices per replica make 2 stages, so 'stages' must name one layer (the first layer of each "
     "stage except the first stage), but it names 2; `stages: auto` chooses the layers"},
    {pipeline("devices: [cpu:0], stages: @[head]"), "", "",
     "stages: each replica has one device and therefore only one stage, so 'stages' must not name any layer, "
     "but it names 1; add the devices"},
    {pipeline("devices: [cpu:0, cpu:1], stages: [@[head]]"), "", "",
     "pipeline's stages: expected 'auto', or a list of layer names"},
    {pipeline("devices: [cpu:0, cpu:1], stages: @{head: cpu:1}"), "", "",
     "pipeline's stages: expected 'auto', or a list of layer names"},
    {pipeline("devices: [cpu:0, cpu:1], stages: @2"), "", "", "stages: '2' is not a layer of the model"},
    {pipeline("devices: @[cpu:0, cpu:1, cpu:2, cpu:3, cpu:4, cpu:5, cpu:6, cpu:7, cpu:8, cpu:9, cpu:10]"), "",
     "", "pipeline: the model cannot be divided into 11 stages, because only 10 layers can begin a stage"},
    // Numbers of replicas.
    {"{mirrored: {devices: [cpu:0], replicas: @0}}", "", "",
     "mirrored's replicas: expected a number from 1 to 1024, found '0'"},
    {"{mirrored: {devices: [cpu:0], replicas: [3, @1025]}}", "", "",
     "mirrored's replicas: expected a number from 1 to 1024, found '1025'"},
    {"{mirrored: {devices: [cpu:0], replicas: [3, @one]}}", "", "", "mirrored's replicas: expected"},
    {"{mirrored: {devices: [cpu:0], replicas: @[]}}", "", "",
     "mirrored's replicas: expected a number, or a list with one number for each process"},
    {"{sharded: {devices: [cpu:0], replicas: [@-1, 2]}}", "", "",
     "sharded's replicas: expected a number from 1 to 1024, found '-1'"},
    // Other options of the pipeline.
    {pipeline("devices: [cpu:0, cpu:1, cpu:2], replicas: @2"), "", "",
     "pipeline: 3 devices cannot be divided evenly among 2 replicas"},
    {pipeline("devices: [cpu:0], replicas: @2"), "", "",
     "pipeline: 1 device cannot be divided evenly among 2 replicas"},
    {pipeline("devices: [cpu:0, cpu:1], replicas: @0"), "", "",
     "pipeline's replicas: expected a number from 1 to 1024, found '0'"},
    {pipeline("devices: [cpu:0, cpu:1], microbatches: @0"), "", "",
     "pipeline's microbatches: expected a number from 1 to 65536, found '0'"},
    {pipeline("devices: [cpu:0, cpu:1], schedule: @1fb1"), "", "",
     "pipeline's schedule: unknown value '1fb1'; did you mean '1f1b'?"},
    {pipeline("devices: [cpu:0, cpu:1], @chunks: 4"), "", "",
     "unknown key 'chunks' in pipeline; did you mean 'microbatches'?"},
    {"{sharded: {devices: [cpu:0, cpu:1], level: @weights}}", "", "",
     "sharded's level: unknown value 'weights'"},
    {"{sharded: {devices: [cpu:0, cpu:1], @stage: 3}}", "", "",
     "unknown key 'stage' in sharded; use the option 'level', which is optimizer, gradients or parameters "
     "(ZeRO's stages 1 to 3)"},
    {"{@pipelined: {devices: [cpu:0, cpu:1]}}", "", "",
     "unknown strategy 'pipelined'; did you mean 'pipeline'?"},
    {"{@fsdp: {devices: [cpu:0, cpu:1]}}", "", "", "unknown strategy 'fsdp'; did you mean 'sharded'?"},
    // Unsupported combinations.
    {placed("head: cpu:0"), "  batch_size: 16", "  batch_size: 16\n  precision: @mixed_bfloat16",
     "cpu:0: precision mixed_bfloat16 is for GPUs"},
    {pipeline("devices: [cpu:0, cpu:1]"), "  batch_size: 16", "  batch_size: 16\n  precision: @tf32",
     "cpu:0: precision tf32 is for GPUs"},
    {"{sharded: {devices: [cpu:0, cpu:1]}}", "  batch_size: 16", "  batch_size: @2147483647",
     "batch_size: 2147483647 is too large; at most 22369620 samples are possible with 2 "
     "replicas, because the output of input 'image' has the shape 8x8x3 for each sample"},
    // Shared weights.
    {placed("head: cpu:0"), kTwin, "    - dense: {name: right/twin, shared_with: @merged}",
     "shared_with: 'merged' is not an earlier dense layer"},
    {placed("head: cpu:0"), kTwin, "    - dense: {name: right/twin, shared_with: @right/twin}",
     "shared_with: 'right/twin' is not an earlier dense layer"},
    {placed("head: cpu:0"), kTwin, "    - dense: {name: right/twin, shared_with: right/stem, @units: 4}",
     "dense 'right/twin' shares the weights and the options of 'right/stem' (shared_with); remove this "
     "option"},
};

}  // namespace

TEST_CASE("the unmodified configuration has no errors") {
  for (const std::string& strategy :
       {placed("'left/*': cpu:0, 'right/*': cpu:1, head: cpu:2"),
        pipeline("devices: [cpu:0, cpu:1], stages: head"),
        pipeline("devices: [cpu:0, cpu:1, cpu:2, cpu:3], replicas: 2, stages: [body_1], schedule: gpipe"),
        pipeline("devices: [cpu:0, cpu:1, cpu:2]"), std::string("{sharded: {devices: [cpu:0, cpu:1]}}")}) {
    CAPTURE(strategy);
    CHECK(errors_of(replaced(std::string(kGood), "STRATEGY", strategy)) == "");
  }
}

TEST_CASE("each wrong placement is the only error, at its source location") {
  CHECK(std::size(kWrong) >= 40);
  for (const WrongPlacement& wrong : kWrong) {
    std::string text(kGood);
    if (!wrong.line.empty()) text = replaced(text, wrong.line, wrong.by);
    text = replaced(text, "STRATEGY", wrong.strategy);
    const std::string place = take_marker(text);
    CAPTURE(wrong.strategy);
    CAPTURE(wrong.by);
    const std::string errors = errors_of(text);
    const std::string expected = place + ": error: " + wrong.message;
    CHECK_MESSAGE(errors.starts_with(expected), "expected " << expected << "\nfound    " << errors);
    CHECK_MESSAGE(errors.find('\n') == std::string::npos, errors);
  }
}

TEST_CASE("all errors of a placement are reported at once") {
  std::string text =
      replaced(std::string(kGood), "STRATEGY",
               pipeline("devices: [cpu:0, gpu:9999, cpu:2], replicas: 2, stages: [heda, merged, "
                        "left/mean]"));
  text = replaced(text, kHead, head_with("device: cpu:0"));
  const std::string errors = errors_of(text);
  for (const char* message :
       {":16:45: error: device: 'head' is assigned to cpu:0", ":18:40: error: gpu:9999: ",
        ":18:68: error: pipeline: 3 devices cannot be divided evenly among 2 replicas",
        ":18:80: error: stages: 'heda' is not a layer",
        ":18:94: error: stages: 'left/mean' comes before 'merged'"})
    CHECK_MESSAGE(errors.find(message) != std::string::npos, message << " in\n" << errors);
  CHECK(std::count(errors.begin(), errors.end(), '\n') == 4);

  text =
      replaced(std::string(kGood), "STRATEGY", placed("'left/*': gpu:9999, '*/stem': cpu:1, nowhere: cpu:0"));
  const std::string of_placed = errors_of(text);
  for (const char* message :
       {"error: gpu:9999: ", "error: placed: 'left/*' puts the layer 'left/stem' on gpu:9999",
        "error: placed: the pattern 'nowhere' matches no layer"})
    CHECK_MESSAGE(of_placed.find(message) != std::string::npos, message << " in\n" << of_placed);
}

TEST_CASE("devices are checked even if the model has errors") {
  for (const std::string& strategy : {placed("head: cpu:0"), pipeline("devices: [cpu:0, cpu:1]"),
                                      std::string("{sharded: {devices: [cpu:0, cpu:1]}}")}) {
    CAPTURE(strategy);
    std::string text = replaced(std::string(kGood), "STRATEGY", strategy);
    text = replaced(text, kHead, "    - dense: {name: head, untis: 3}");
    text = replaced(text, "  batch_size: 16", "  precision: mixed_float16");
    const std::string errors = errors_of(text);
    CHECK(errors.find("unknown key 'untis'") != std::string::npos);
    CHECK(errors.find("cpu:0: precision mixed_float16 is for GPUs") != std::string::npos);
    CHECK(errors.find("matches no layer") == std::string::npos);
  }
}
