"""The bench of the judge: our rule and the usual ones, on recorded noise with known truth and on hard cases."""
