"""Tables and figures of the papers themselves: what they used, printed and claim, beside ours."""
