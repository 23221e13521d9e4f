"""The command: `crcr <verb>`. Each verb belongs to a stage; `crcr run` walks the hardware stages."""
