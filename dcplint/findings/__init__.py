"""What a rule reports: findings, their evidence and their identity."""
