"""The known ways of training another network, each planted in an adapter; of every subject."""

from defects import generative, images, modern, optimisers, papers, recurrent, transformers

SUBJECTS = (generative, images, modern, papers, recurrent, transformers, optimisers)
# {defect: (network, adapter, words of the refusal)}
PLANTED = {defect: found for subject in SUBJECTS for defect, found in subject.PLANTED.items()}
