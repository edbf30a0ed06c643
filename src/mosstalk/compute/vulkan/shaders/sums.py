"""Sums and largest values over a workgroup, in WGSL."""


def over_threads(threads: int) -> str:
    """`sum_of(thread, value)` and `largest_of(thread, value)`: the result, in every thread.

    All threads of the workgroup must call them. The order of a sum is a fixed tree: thread i takes
    up thread i + threads / 2, then i + threads / 4, and so on.
    """
    return f"""
var<workgroup> joined: array<f32, {threads}>;

fn sum_of(thread: u32, value: f32) -> f32 {{
    joined[thread] = value;
    workgroupBarrier();
    for (var half = {threads // 2}u; half > 0u; half /= 2u) {{
        if (thread < half) {{ joined[thread] += joined[thread + half]; }}
        workgroupBarrier();
    }}
    return workgroupUniformLoad(&joined[0]);
}}

fn largest_of(thread: u32, value: f32) -> f32 {{
    joined[thread] = value;
    workgroupBarrier();
    for (var half = {threads // 2}u; half > 0u; half /= 2u) {{
        if (thread < half) {{ joined[thread] = max(joined[thread], joined[thread + half]); }}
        workgroupBarrier();
    }}
    return workgroupUniformLoad(&joined[0]);
}}
"""
