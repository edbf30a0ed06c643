"""Residual codebooks: a frame's vector to codes and back (spec nano.md 5.3, voicegen.md 6.4)."""

import numpy as np

from mosstalk.checkpoint.storage import StorageType, StoredTensor
from mosstalk.codec.moss_audio_tokenizer.weights import (
    CodebookWeights,
    CodecWeights,
    EncoderWeights,
)
from mosstalk.compute.ops import Buffer
from mosstalk.compute.program import Program


def record_encode(
    program: Program,
    x: Buffer,
    codes: Buffer,
    encoder: EncoderWeights,
    codebooks: tuple[CodebookWeights, ...],
) -> None:
    """Write the codes of x [rows, code_dim] into the int buffer `codes` [rows, codebooks].

    The nearest unit vector is the one with the largest dot product, whatever the length of the
    projected residual, so that length is left as it is.
    """
    residual = program.linear(x, *encoder.quantizer_in)
    for i, (search, book) in enumerate(zip(encoder.searches, codebooks, strict=True)):
        projected = program.linear(residual, *search.in_proj)
        program.argmax(codes, i, program.linear(projected, search.directions))
        found = program.embed(codes, i, [book.codebook])
        residual = program.add(residual, program.linear(found, *book.out_proj), factor=-1.0)


def record_decode(program: Program, codes: Buffer, weights: CodecWeights) -> Buffer:
    """The vectors [rows, code_dim] of the int buffer `codes` [rows, codebooks].

    A codebook whose code is outside its table, such as -1, is left out together with its bias:
    each table row carries a 1 that the bias is multiplied by.
    """
    tables = [_with_column_of_ones(book.codebook) for book in weights.codebooks]
    sides = [
        np.concatenate([weight.to_float32(), bias.to_float32()[:, None]], axis=1)
        for weight, bias in (book.out_proj for book in weights.codebooks)
    ]
    matrix = np.ascontiguousarray(np.concatenate(sides, axis=1))
    joined = StoredTensor("quantizer.out_projs", matrix.shape, StorageType.F32, matrix)
    summed = program.linear(program.embed(codes, 0, tables, concat=True), joined)
    return program.linear(summed, *weights.quantizer_out)


def _with_column_of_ones(table: StoredTensor) -> StoredTensor:
    rows = table.to_float32()
    wide = np.concatenate([rows, np.ones((len(rows), 1), np.float32)], axis=1)
    return StoredTensor(table.name, wide.shape, StorageType.F32, wide)
