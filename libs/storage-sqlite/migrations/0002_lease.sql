-- A worker may ask for another lease than the policy's; it holds for this claim.

ALTER TABLE turns ADD COLUMN asked_lease_ms INTEGER;
