"""Models as ONNX files: one file that scores, decides, and needs neither aloof nor torch.

`export` writes one, `to_onnx` returns its bytes. `aloof.lite` scores with it.
"""

from aloof.export.writing import Exported, check_path, export, to_onnx

__all__ = ["Exported", "check_path", "export", "to_onnx"]
