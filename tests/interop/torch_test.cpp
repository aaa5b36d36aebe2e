// Tests the conversion to PyTorch classes. tests/keras tests the result with PyTorch.
#include <algorithm>

#include <doctest/doctest.h>

#include "exported.h"
#include "interop/torch/builder.h"
#include "interop/torch/script.h"
#include "support/text.h"

using namespace dtrain;
using test::contains;

namespace {

std::string script_of(TestExport& exported) {
  TorchBuilder builder(exported.graph);
  return torch_script(exported.model, builder, "m.safetensors", "m_probes.safetensors").text;
}

}  // namespace

TEST_CASE("a script has the modules and the lines of forward()") {
  TestExport exported(R"(
inputs: {image: [5, 5, 3]}
layers:
  - conv2d: {filters: 4, kernel_size: 2, padding: same, activation: relu}
  - dropout: 0.5
  - flatten
  - dense: {units: 2, use_bias: false}
)");
  const std::string script = script_of(exported);
  CAPTURE(script);
  CHECK(script.starts_with(kScriptHead));
  CHECK(contains(script, "self.conv2d = nn.Conv2d(3, 4, (2, 2), stride=(1, 1), dilation=(1, 1))\n"));
  CHECK(contains(script, "self.dense = nn.Linear(100, 2, bias=False)\n"));
  CHECK(contains(script, R"(    def forward(self, image):
        # image [batch, 5, 5, 3]
        v0 = image.permute(0, 3, 1, 2)
        v1 = self.conv2d(F.pad(v0, (0, 1, 0, 1), value=0))
        v2 = F.relu(v1)
        v3 = v2.permute(0, 2, 3, 1)
        v4 = v3.reshape(v3.shape[0], 100)
        v5 = self.dense(v4)
        return v5
)"));
  CHECK(!contains(script, "average_pool"));
}

TEST_CASE("sequence layers are exported as PyTorch's 1d modules and functions") {
  TestExport exported(R"(
inputs: {x: [12, 3]}
layers:
  - conv1d: {filters: 4, kernel_size: 3, padding: causal, dilation_rate: 2}
  - prelu: {shared_axes: 1}
  - max_pooling1d
  - average_pooling1d: {pool_size: 2, padding: same}
  - prelu: {name: each}
)");
  const std::string script = script_of(exported);
  CAPTURE(script);
  CHECK(contains(script, "self.conv1d = nn.Conv1d(3, 4, 3, stride=1, dilation=2)\n"));
  CHECK(contains(script, "self.prelu = nn.PReLU(4)\n"));
  CHECK(contains(script, R"(
        v0 = x.permute(0, 2, 1)
        v1 = self.conv1d(F.pad(v0, (4, 0), value=0))
        v2 = self.prelu(v1)
        v3 = F.max_pool1d(v2, 2, 2)
        v4 = average_pool(v3, 2, 2, (0, 0))
        v5 = v4.permute(0, 2, 1)
        v6 = torch.where(v5 < 0, v5 * self.each["weight"], v5)
        return v6
)"));
  const TorchBuilder builder(exported.graph);
  CHECK(builder.weights()[2].key() == "prelu.weight");
  CHECK(builder.weights()[2].shape == Shape{4});
  CHECK(builder.weights()[3].shape == Shape{3, 4});
}

TEST_CASE("recurrent layers are PyTorch's modules") {
  TestExport exported(R"(
inputs: {x: [12, 3]}
layers:
  - lstm: {units: 4, return_sequences: true}
  - simple_rnn: {units: 2, activation: relu, go_backwards: true, use_bias: false}
)");
  const std::string script = script_of(exported);
  CAPTURE(script);
  CHECK(contains(script, "self.lstm = nn.LSTM(3, 4, batch_first=True)\n"));
  CHECK(contains(script,
                 "self.simple_rnn = nn.RNN(4, 2, bias=False, batch_first=True, nonlinearity=\"relu\")\n"));
  CHECK(contains(script, R"(
        v0 = self.lstm(x)[0]
        v1 = self.simple_rnn(v0.flip(1))[0][:, -1]
        return v1
)"));
  const TorchBuilder builder(exported.graph);
  std::string all;
  for (const TorchWeight& weight : builder.weights()) all += weight.key() + " " + weight.shape.str() + "\n";
  CHECK(all == R"(lstm.weight_ih_l0 16x3
lstm.weight_hh_l0 16x4
lstm.bias_ih_l0 16
lstm.bias_hh_l0 16
simple_rnn.weight_ih_l0 2x4
simple_rnn.weight_hh_l0 2x2
)");
}

TEST_CASE("masked steps are sorted to the end, and their outputs are states of earlier steps") {
  TestExport exported(R"(
inputs: {x: {shape: [12], dtype: int32}}
layers:
  - embedding: {input_dim: 9, output_dim: 3, mask_zero: true}
  - lstm: {units: 4, return_sequences: true}
  - multi_head_attention: {num_heads: 1, causal: true, use_bias: false}
  - global_average_pooling1d
)");
  const std::string script = script_of(exported);
  CAPTURE(script);
  CHECK(contains(script, R"(
        v1 = x != 0
        v2 = torch.sort((~v1).byte(), dim=1, stable=True)[1]
        v3 = v1.cumsum(1).unsqueeze(-1)
        v4 = (torch.take_along_dim(self.lstm(torch.take_along_dim(v0, v2.unsqueeze(-1), 1))[0], (v3 - 1).clamp(min=0), 1) * (v3 > 0))
)"));
  CHECK(contains(script, "= v1[:, None, None, :]\n"));
  CHECK(contains(script, ".any(-1, keepdim=True), F.scaled_dot_product_attention("));
  CHECK(contains(script, "= v1.unsqueeze(-1)\n"));
}

TEST_CASE("weights have PyTorch's names and order of axes") {
  const TestExport exported(R"(
inputs: {image: [5, 5, 3]}
layers:
  - conv2d: {filters: 4, kernel_size: [2, 1], name: a/b}
  - depthwise_conv2d: {kernel_size: [1, 2], depth_multiplier: 2, use_bias: false, name: if}
  - batch_normalization: {scale: false, name: 1st}
)");
  const TorchBuilder builder(exported.graph);
  std::string all;
  for (const TorchWeight& weight : builder.weights()) all += weight.key() + " " + weight.shape.str() + "\n";
  CHECK(all == R"(a_b.weight 4x3x2x1
a_b.bias 4
layer_if.weight 8x1x1x2
layer_1st.weight 8
layer_1st.bias 8
layer_1st.running_mean 8
layer_1st.running_var 8
)");
  CHECK(builder.layers().at("layer_1st") == "1st");
  // The exported script looks up weights by the names of the layers, also if these are Python keywords.
  CHECK(torch_weights(exported.graph)[2].module == "if");
}

TEST_CASE("convolutions have the argument groups if they have several groups") {
  TestExport exported(R"(
inputs: {image: [5, 5, 4]}
layers:
  - conv2d: {filters: 6, kernel_size: 3, groups: 2, use_bias: false, name: a}
  - reshape: [3, 3, 1, 6]
  - conv3d: {filters: 3, kernel_size: 1, groups: 3, name: b}
  - reshape: [9, 3]
  - conv1d: {filters: 6, kernel_size: 2, groups: 3, name: c}
)");
  const std::string script = script_of(exported);
  CAPTURE(script);
  CHECK(contains(script,
                 "self.a = nn.Conv2d(4, 6, (3, 3), stride=(1, 1), dilation=(1, 1), groups=2, bias=False)\n"));
  CHECK(contains(script,
                 "self.b = nn.Conv3d(6, 3, (1, 1, 1), stride=(1, 1, 1), dilation=(1, 1, 1), groups=3)\n"));
  CHECK(contains(script, "self.c = nn.Conv1d(3, 6, 2, stride=1, dilation=1, groups=3)\n"));
  CHECK(TorchBuilder(exported.graph).weights()[0].shape == Shape{6, 2, 3, 3});
}

TEST_CASE("modules do not replace the functions of nn.Module") {
  TestExport exported(R"(
inputs: {x: [3]}
layers:
  - dense: {units: 2, name: register_buffer}
  - dense: {units: 2, name: get_parameter}
  - dense: {units: 2, name: state}
)");
  const std::string script = script_of(exported);
  CAPTURE(script);
  CHECK(contains(script, "self.layer_register_buffer = nn.Linear(3, 2)\n"));
  CHECK(contains(script, "self.layer_get_parameter = nn.Linear(2, 2)\n"));
  CHECK(contains(script, "self.state = nn.Linear(2, 2)\n"));
}

TEST_CASE("volume layers are exported as PyTorch's 3d modules") {
  TestExport exported(R"(
inputs: {v: [5, 6, 7, 3]}
layers:
  - conv3d: {filters: 4, kernel_size: [3, 2, 1], padding: same}
  - batch_normalization
  - max_pooling3d
  - average_pooling3d: {pool_size: 2, strides: 1, padding: same}
  - global_average_pooling3d
)");
  const std::string script = script_of(exported);
  CAPTURE(script);
  CHECK(contains(script, "self.conv3d = nn.Conv3d(3, 4, (3, 2, 1), stride=(1, 1, 1), dilation=(1, 1, 1))\n"));
  CHECK(contains(script, "self.batch_normalization = nn.BatchNorm3d(4, "));
  CHECK(contains(script, R"(
        v0 = v.permute(0, 4, 1, 2, 3)
        v1 = self.conv3d(F.pad(v0, (0, 0, 0, 1, 1, 1), value=0))
        v2 = self.batch_normalization(v1)
        v3 = F.max_pool3d(v2, (2, 2, 2), (2, 2, 2))
        v4 = average_pool(v3, (2, 2, 2), (1, 1, 1), (0, 1, 0, 1, 0, 1))
        v5 = v4.mean((2, 3, 4))
        return v5
)"));
  CHECK(TorchBuilder(exported.graph).weights()[0].shape == Shape{4, 3, 3, 2, 1});
}

TEST_CASE("normalizations and rescaling have PyTorch's modules and functions") {
  TestExport exported(R"(
inputs: {x: [5, 6]}
layers:
  - rescaling: {scale: 0.5, offset: [1, 2, 3, 4, 5, 6]}
  - group_normalization: {groups: 3, scale: false}
  - rms_normalization
  - gaussian_noise: 0.1
  - spatial_dropout1d: 0.1
  - unit_normalization
  - softmax
)");
  const std::string script = script_of(exported);
  CAPTURE(script);
  CHECK(contains(script, "self.group_normalization = nn.GroupNorm(3, 6, eps=0.001)\n"));
  CHECK(contains(script, "self.rms_normalization = nn.RMSNorm(6, eps=1e-06)\n"));
  CHECK(contains(script, R"(
        v0 = x * 0.5 + x.new_tensor([1, 2, 3, 4, 5, 6])
        v1 = v0.permute(0, 2, 1)
        v2 = self.group_normalization(v1)
        v3 = v2.permute(0, 2, 1)
        v4 = self.rms_normalization(v3)
        v5 = F.normalize(v4, dim=-1)
        v6 = torch.softmax(v5, -1)
        return v6
)"));
}

TEST_CASE("layers that share weights share a module") {
  const TestExport exported(R"(
inputs: {a: [4], b: [4]}
layers:
  - dense: {units: 3, inputs: a, name: one}
  - dense: {shared_with: one, inputs: b, name: two}
  - add: {inputs: [one, two]}
)");
  const TorchBuilder builder(exported.graph);
  CHECK(builder.constructors().size() == 1);
  CHECK(builder.weights().size() == 2);
  CHECK(builder.lines() == std::vector<std::string>{"v0 = self.one(a)", "v1 = self.one(b)", "v2 = v0 + v1"});
}

TEST_CASE("a dense layer with an embedding's weights reads them from its module") {
  const TestExport exported(R"(
inputs: {x: {shape: [4], dtype: int32}}
layers:
  - embedding: {input_dim: 9, output_dim: 3, name: token}
  - dense: {shared_with: token}
)");
  const TorchBuilder builder(exported.graph);
  CHECK(builder.constructors() == std::vector<std::string>{"self.token = nn.Embedding(9, 3)"});
  CHECK(builder.weights().size() == 1);
  CHECK(builder.lines() ==
        std::vector<std::string>{"v0 = self.token(x)", "v1 = F.linear(v0, self.token.weight)"});
}

TEST_CASE("the script converts units and probabilities") {
  TestExport exported("inputs: {x: [2]}\nlayers: [dense: {units: 2, name: last}]\n");
  exported.model.inputs[0] = {{"x", {1, 2}, DType::float32}, {5}, {2}};
  exported.model.outputs[0] = {"last", ExportedOutput::Finish::softmax, {{2, 3}, {0, 1}}};
  const std::string script = script_of(exported);
  CAPTURE(script);
  CHECK(contains(script,
                 "        x = (x - self.x_center) * self.x_scale\n        x = x.reshape(x.shape[0], 2)\n"));
  CHECK(contains(script, "return torch.softmax(v0, -1) * self.last_scale + self.last_offset\n"));
  CHECK(contains(script, "self.register_buffer(\"last_scale\", torch.zeros(2))\n"));
}

TEST_CASE("variables of forward() differ from the names of the inputs") {
  TestExport exported(R"(
inputs: {v0: [4], v2: [4]}
layers:
  - dense: {name: a, units: 4, inputs: v0}
  - concatenate: {inputs: [a, v2]}
)");
  const std::string script = script_of(exported);
  CAPTURE(script);
  CHECK(contains(script, "v1 = self.a(v0)\n"));
  CHECK(contains(script, "v3 = torch.cat((v1, v2,), 1)\n"));
}
