"""Layer and profile files in the shape in which each generation of TensorRT writes them, after public files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

COPY = "Reformatting CopyNode for Input Tensor 0 to conv1 + relu1"
FP32 = "Row major linear FP32"
INT8_WIDE = "Thirty-two wide channel vectorized row major Int8 format"
HALF_WIDE = "Channel major FP16 format where channel % 8 == 0"
SEPARATOR = "\x1f"


def tensor(name: str, dimensions: list[int], kind: str, location: str | None = "Device") -> dict[str, Any]:
    """One tensor of a layer; TensorRT 8.2 has no location."""
    return {
        "Name": name,
        **({"Location": location} if location else {}),
        "Dimensions": dimensions,
        "Format/Datatype": kind,
    }


def named(names: list[str]) -> str:
    """Names only, laid out as TensorRT does."""
    return '{"Layers": [' + "\n,".join(json.dumps(name) for name in names) + '\n],\n"Bindings": ["x"\n,"y"\n]}\n'


def detailed(layers: list[dict[str, Any]]) -> str:
    """Objects, laid out as TensorRT does."""
    texts = [json.dumps(layer, indent=2) for layer in layers]
    return '{"Layers": [' + ",".join(texts) + '],\n"Bindings": ["x"\n,"y"\n]}\n'


def profile(times: list[tuple[str, float]], count: int = 10, median: bool = True) -> str:
    """What trtexec writes: names as they are, six digits. Medians came with TensorRT 8.5."""
    total = sum(ms for _, ms in times) * count
    lines = [f'  {{ "count" : {count} }}']
    for name, ms in times:
        share = f"{100 * ms * count / total:.6g}" if total else "-nan"
        middle = f', "medianMs" : {ms:.6g}' if median else ""
        times = f'"timeMs" : {ms * count:.6g}, "averageMs" : {ms:.6g}{middle}'
        lines.append(f'{{ "name" : "{name}", {times}, "percentage" : {share} }}')
    return "[\n" + "\n, ".join(lines) + "\n]\n"


def of_8_2() -> list[dict[str, Any]]:
    """No locations, no metadata, formats that end in a full stop."""
    return [
        {
            "Name": "PWN(PWN(relu_1), add_1)",
            "LayerType": "PointWiseV2",
            "Inputs": [tensor("x", [10, 2], "Row major linear FP16 format.", None)],
            "Outputs": [tensor("y", [10, 2], "Row major linear FP16 format.", None)],
            "ParameterType": "PointWise",
            "Operations": ["const auto var0 = pwgen::iMax(arg0, literal0);"],
            "TacticValue": "0x0",
        },
        {
            "Name": "fc1 + bias_1",
            "LayerType": "CaskConvolution",
            "Inputs": [tensor("y", [16, 512, 28, 28], INT8_WIDE + ".", None)],
            "Outputs": [tensor("z", [16, 256, 28, 28], INT8_WIDE + ".", None)],
            "ParameterType": "Convolution",
            "Weights": {"Type": "Int8", "Count": 131072},
            "Bias": {"Type": "Float", "Count": 256},
            "HasBias": 1,
            "TacticName": "sm80_xmma_fprop_implicit_gemm",
            "TacticValue": "0x11bde0e1d9f2f35d",
        },
    ]


def of_8_6() -> list[dict[str, Any]]:
    """Origins, streams, metadata with separators."""
    return [
        {
            "Name": COPY,
            "LayerType": "Reformat",
            "Inputs": [tensor("x", [1, 3, 8, 8], FP32)],
            "Outputs": [tensor("x'", [1, 3, 8, 8], HALF_WIDE)],
            "ParameterType": "Reformat",
            "Origin": "REFORMAT",
            "TacticValue": "0x00000000000003ea",
            "StreamId": 0,
            "Metadata": "",
        },
        {
            "Name": "conv1 + relu1",
            "LayerType": "CaskConvActPool",
            "Inputs": [tensor("x'", [1, 3, 8, 8], HALF_WIDE)],
            "Outputs": [tensor("h", [1, 4, 8, 8], HALF_WIDE)],
            "ParameterType": "ConvActPool",
            "ConvWeights": {"Type": "Half", "Count": 108},
            "ConvBias": {"Type": "Half", "Count": 4},
            "TacticName": "sm80_xmma_fprop",
            "StreamId": 0,
            "Metadata": f"[ONNX Layer: /conv1/Conv]{SEPARATOR}[ONNX Layer: /relu1/Relu]\x1e[ONNX Layer: /conv1/Conv]",
        },
        {
            "Name": "q",
            "LayerType": "Reformat",
            "Inputs": [tensor("h", [1, 4, 8, 8], HALF_WIDE)],
            "Outputs": [tensor("q", [1, 4, 8, 8], "Row major Int8 format")],
            "Origin": "QDQ",
            "StreamId": 0,
            "Metadata": "[ONNX Layer: /q/QuantizeLinear]",
        },
        {"Name": "shape", "LayerType": "NoOp", "Inputs": [], "Outputs": [], "StreamId": 0, "Metadata": ""},
        {
            "Name": "{ForeignNode[/a/Add.../b/Softmax]}",
            "LayerType": "Myelin",
            "Inputs": [
                tensor("q", [1, 256], "Row major Int8 format"),
                tensor("s", [2], "Row major linear Int32", "Host"),
            ],
            "Outputs": [tensor("o", [1, 256], "Row major linear FP16 format")],
            "StreamId": 0,
            "Metadata": "",
        },
    ]


def of_10() -> list[dict[str, Any]]:
    """Compiled kernels: short formats, all of a fusion in the metadata."""
    return [
        {
            "Name": "/mlp/fc1/MatMul_myl0_7",
            "LayerType": "gemm",
            "Inputs": [tensor("a", [1, 40, 1024], "Half")],
            "Outputs": [tensor("b", [1, 40, 256], "Half")],
            "TacticName": "sm80_xmma_gemm_f16f16_f16f16_f16_nn_n",
            "StreamId": 0,
            "Metadata": "[ONNX Layer: /mlp/fc1/MatMul][ONNX Layer: /mlp/fc1/Add]",
        },
        {
            "Name": "__myl_AddCastMeanSub_myl0_8",
            "LayerType": "kgen",
            "Inputs": [tensor("b", [1, 40, 256], "BFloat16"), tensor("i", [1, 40], "Int64")],
            "Outputs": [tensor("c", [1, 40, 256], "FP8")],
            "TacticName": "__myl_AddCastMeanSub_0xf2543c36",
            "StreamId": 1,
            "Metadata": "[ONNX Layer: /norm/LayerNormalization]",
        },
        {"Name": "__myl_Wait", "LayerType": "wait", "Inputs": [], "Outputs": [], "StreamId": 1},
    ]


def write(path: Path, text: str) -> Path:
    """A file of it."""
    path.write_text(text, encoding="utf-8")
    return path
