#include "interop/keras/options.h"
#include "interop/layers/table.h"

namespace dtrain {

void add_convolution_formats(std::vector<LayerFormats>& table) {
  table.push_back({"conv2d", keras_image_layer("Conv2D")});
  table.push_back({"depthwise_conv2d", keras_image_layer("DepthwiseConv2D")});
  table.push_back({"conv2d_transpose", keras_image_layer("Conv2DTranspose")});
}

}  // namespace dtrain
