"""What a person sees of a skill and decides: approve, reject, revise, pin, roll back, retire."""
