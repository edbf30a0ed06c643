"""The vulkan backend: WGSL compute shaders through wgpu, over Vulkan, Metal or Direct3D 12."""
