"""ResNet-50 as in configs/models/resnet50.yaml, with modules in the same order."""
import torch.nn as nn
import torch.nn.functional as F


def norm(channels):
    return nn.BatchNorm2d(channels, eps=1.001e-5, momentum=0.01)


class Bottleneck(nn.Module):
    def __init__(self, inputs, filters, stride, widens):
        super().__init__()
        out = 4 * filters
        self.shortcut = nn.Sequential(nn.Conv2d(inputs, out, 1, stride), norm(out)) if widens else nn.Identity()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, filters, 1, stride), norm(filters), nn.ReLU(inplace=True),
            nn.Conv2d(filters, filters, 3, 1, 1), norm(filters), nn.ReLU(inplace=True),
            nn.Conv2d(filters, out, 1), norm(out))

    def forward(self, x):
        return F.relu(self.shortcut(x) + self.body(x), inplace=True)


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3), norm(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for filters, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for index in range(blocks):
            stride = 2 if index == 0 and filters > 64 else 1
            layers.append(Bottleneck(inputs, filters, stride, index == 0))
            inputs = 4 * filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))
